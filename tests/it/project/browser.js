// What does not fit on a page: of the tests in browser.rs alone, a page itself has no script.
const found = [];
const say = (what, element) => found.push(what + ": " + (element.textContent || element.id || element.tagName).trim().slice(0, 60));
const root = document.documentElement;
if (root.scrollWidth > root.clientWidth + 1) say("the page is wider than its window, " + root.scrollWidth, document.querySelector("h1"));
for (const figure of document.querySelectorAll("figure")) {
  const frame = figure.getBoundingClientRect();
  const svg = figure.querySelector("svg");
  const box = svg.getBoundingClientRect();
  if (box.width < 50 || box.height < 20) say("a picture without room", figure);
  if (box.left < frame.left - 1 || box.right > frame.right + 1) say("a picture beyond its frame", figure);
  const texts = [...svg.querySelectorAll("text")].map(text => [text, text.getBoundingClientRect()]);
  for (const [text, at] of texts) {
    if (at.left < box.left - 2 || at.right > box.right + 2 || at.top < box.top - 2 || at.bottom > box.bottom + 2) {
      say("a text beyond the picture " + svg.id, text);
    }
  }
  const slack = 2 * box.width / svg.viewBox.baseVal.width;
  for (let i = 0; i < texts.length; i++) {
    for (let j = 0; j < i; j++) {
      const [a, b] = [texts[i][1], texts[j][1]];
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > slack && down > 2 * slack) say("texts over one another in " + svg.id + ", " + texts[j][0].textContent, texts[i][0]);
    }
  }
}
const sections = [...document.querySelectorAll("h1, h2, h3, figure, main p, main .wide, pre")].map(e => [e, e.getBoundingClientRect()]);
for (const [element, at] of sections) {
  if (at.right > root.clientWidth + 1 || at.left < -1) say("beyond the window", element);
}
for (const grid of document.querySelectorAll(".grid")) {
  const boxes = [...grid.children].map(child => child.getBoundingClientRect());
  for (let i = 1; i < boxes.length; i++) {
    const [a, b] = [boxes[i - 1], boxes[i]];
    if (b.left < a.right - 1 && b.top < a.bottom - 1) say("frames over one another", grid.children[i]);
  }
}
document.title = "found " + JSON.stringify(found);
