//! Places of elements in arrays of several axes, as expressions.

/// The indices of an element of an array, by the number of the element, which is an expression.
pub(super) fn indices(element: &str, shape: &[usize]) -> Vec<String> {
    let axis = |(axis, extent): (usize, &usize)| {
        let stride: usize = shape[axis + 1..].iter().product();
        let outer: usize = shape[..axis].iter().product();
        match (*extent, stride, outer) {
            (1, ..) => "0".to_owned(),
            (_, 1, 1) => element.to_owned(),
            (_, _, 1) => format!("({element}) / {stride}"),
            (_, 1, _) => format!("({element}) % {extent}"),
            _ => format!("({element}) / {stride} % {extent}"),
        }
    };
    shape.iter().enumerate().map(axis).collect()
}

/// The number of the element at some indices.
pub(super) fn element(indices: &[String], shape: &[usize]) -> String {
    let terms = indices.iter().enumerate().filter(|(axis, index)| shape[*axis] > 1 && *index != "0");
    let terms = terms.map(|(axis, index)| match shape[axis + 1..].iter().product::<usize>() {
        1 => format!("({index})"),
        stride => format!("({index}) * {stride}"),
    });
    let terms: Vec<String> = terms.collect();
    if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_of_elements_and_back() {
        let shape = [2, 3, 4];
        assert_eq!(indices("e", &shape), ["(e) / 12", "(e) / 4 % 3", "(e) % 4"]);
        assert_eq!(indices("e", &[5]), ["e"]);
        assert_eq!(indices("e", &[1, 5]), ["0", "e"]);
        assert_eq!(element(&indices("e", &shape), &[2, 1, 4]), "((e) / 12) * 4 + ((e) % 4)");
        assert_eq!(element(&["0".to_owned()], &[1]), "0");
    }
}
