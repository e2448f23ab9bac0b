//! Places of elements in arrays of several axes, as expressions.

use super::loops::MOST_UNROLLED;

/// Elements of the last axis from which on a loop over elements is one over those of this axis, in one over all others:
/// they fill a vector.
const FEWEST_COLUMNS: usize = 8;

/// The extent of the last axis, where elements are gone through by a loop over rows (`e_row`) and one over columns
/// (`e_col`). Without it the place of an element in an array of fewer axes would have to be divided out, and what stands
/// there gathered.
pub(super) fn columns(shape: &[usize]) -> Option<usize> {
    let (columns, rest) = shape.split_last()?;
    let rows: usize = rest.iter().product();
    (rows > 1 && *columns >= FEWEST_COLUMNS && rows * columns > MOST_UNROLLED).then_some(*columns)
}

/// The indices of the element `e` of a loop over elements.
pub(super) fn indices_of_element(shape: &[usize]) -> Vec<String> {
    match (columns(shape), shape) {
        (Some(_), [rows @ .., _]) => {
            let mut all = indices("e_row", rows);
            all.push("e_col".to_owned());
            all
        }
        _ => indices("e", shape),
    }
}

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

    #[test]
    fn rows_and_columns() {
        assert_eq!([columns(&[3, 9]), columns(&[2, 3, 9]), columns(&[1, 1, 90])], [Some(9), Some(9), None]);
        assert_eq!([columns(&[90]), columns(&[30, 3]), columns(&[2, 8]), columns(&[])], [None; 4]);
        assert_eq!(element(&indices_of_element(&[2, 3, 9]), &[2, 1, 9]), "((e_row) / 3) * 9 + (e_col)");
        assert_eq!(element(&indices_of_element(&[3, 9]), &[1, 9]), "(e_col)");
        assert_eq!(element(&indices_of_element(&[30, 3]), &[1, 3]), "((e) % 3)");
    }
}
