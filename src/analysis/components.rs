//! Strongly connected components of a graph (Tarjan 1972), without recursion.

/// The components of the graph on `0..n`, callees (successors) before callers; the nodes of each in ascending order.
pub fn components(n: usize, successors: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut search = Search {
        index: vec![usize::MAX; n],
        low: vec![0; n],
        on_stack: vec![false; n],
        stack: Vec::new(),
        next: 0,
        found: Vec::new(),
    };
    for root in 0..n {
        if search.index[root] == usize::MAX {
            search.run(root, &successors);
        }
    }
    search.found
}

struct Search {
    index: Vec<usize>,
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl Search {
    fn open(&mut self, node: usize) {
        self.index[node] = self.next;
        self.low[node] = self.next;
        self.next += 1;
        self.stack.push(node);
        self.on_stack[node] = true;
    }

    fn run(&mut self, root: usize, successors: &impl Fn(usize) -> Vec<usize>) {
        self.open(root);
        let mut path = vec![(root, successors(root), 0)];
        while let Some((node, next, position)) = path.last_mut() {
            let node = *node;
            if let Some(&to) = next.get(*position) {
                *position += 1;
                if self.index[to] == usize::MAX {
                    self.open(to);
                    path.push((to, successors(to), 0));
                } else if self.on_stack[to] {
                    self.low[node] = self.low[node].min(self.index[to]);
                }
            } else {
                path.pop();
                if let Some((parent, ..)) = path.last() {
                    self.low[*parent] = self.low[*parent].min(self.low[node]);
                }
                if self.low[node] == self.index[node] {
                    self.close(node);
                }
            }
        }
    }

    fn close(&mut self, node: usize) {
        let start = self.stack.iter().rposition(|n| *n == node).expect("an open node is on the stack");
        let mut component = self.stack.split_off(start);
        for n in &component {
            self.on_stack[*n] = false;
        }
        component.sort_unstable();
        self.found.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn cycles_are_found_and_successors_come_first() {
        let edges = [vec![1], vec![2], vec![0, 3], vec![4], vec![3], vec![]];
        assert_eq!(components(6, |n| edges[n].clone()), [vec![3, 4], vec![0, 1, 2], vec![5]]);
    }
}
