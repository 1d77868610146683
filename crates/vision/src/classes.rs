//! What a classifier says: the likeliest classes, with probabilities.

use alloc::vec::Vec;

/// How far from one the sum of probabilities may be: numbers of 16 bits come to that when there are thousands.
const NEAR: f32 = 0.01;

/// A class and how likely it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likely {
    pub class: usize,
    /// From 0 to 1. Over all classes it comes to one.
    pub probability: f32,
}

/// The `most` likeliest classes, the likeliest first; of equal ones the first. Outputs that are probabilities already are taken
/// as they are: all from 0 to 1, and one together. All others become probabilities by softmax. What is no number is no class.
pub fn top(outputs: &[f32], most: usize) -> Vec<Likely> {
    let numbers = outputs.iter().enumerate().filter(|(_, value)| value.is_finite());
    let mut all: Vec<Likely> =
        numbers.map(|(class, value)| Likely { class, probability: *value }).collect();
    if !are_probabilities(&all) {
        softmax(&mut all);
    }
    all.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    all.truncate(most);
    all
}

fn are_probabilities(all: &[Likely]) -> bool {
    let within = all.iter().all(|one| (0.0..=1.0).contains(&one.probability));
    let sum: f32 = all.iter().map(|one| one.probability).sum();
    within && (sum - 1.0).abs() <= NEAR
}

fn softmax(all: &mut [Likely]) {
    // Against the largest: no power is above one, and one of them is one.
    let largest = all.iter().map(|one| one.probability).fold(f32::NEG_INFINITY, f32::max);
    for one in all.iter_mut() {
        one.probability = libm::expf(one.probability - largest);
    }
    let sum: f32 = all.iter().map(|one| one.probability).sum();
    all.iter_mut().for_each(|one| one.probability /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn classes(outputs: &[f32]) -> Vec<usize> {
        top(outputs, 5).iter().map(|one| one.class).collect()
    }

    #[test]
    fn the_likeliest_come_first_and_no_more_than_asked() {
        let three = top(&[1.0, 5.0, 3.0, 4.0], 3);
        assert_eq!(three.iter().map(|one| one.class).collect::<Vec<_>>(), [1, 3, 2]);
        assert_eq!(top(&[1.0, 5.0], 0), []);
    }

    #[test]
    fn any_numbers_become_probabilities() {
        let all = top(&[2.0, 1.0, 0.0], 9);
        for (one, expected) in all.iter().zip([0.665_24, 0.244_73, 0.090_03]) {
            assert!((one.probability - expected).abs() < 0.0001);
        }
    }

    #[test]
    fn probabilities_stay_what_they_are() {
        let all = top(&[0.25, 0.75, 0.0], 9);
        assert_eq!(all[0], Likely { class: 1, probability: 0.75 });
        assert_eq!(all[2], Likely { class: 2, probability: 0.0 });
    }

    #[test]
    fn numbers_from_0_to_1_that_come_to_more_are_no_probabilities() {
        let all = top(&[0.9, 0.9], 9);
        assert_eq!(all.iter().map(|one| one.probability).collect::<Vec<_>>(), [0.5, 0.5]);
    }

    #[test]
    fn equal_classes_are_in_their_order() {
        assert_eq!(classes(&[1.0, 2.0, 1.0, 2.0]), [1, 3, 0, 2]);
    }

    #[test]
    fn what_is_no_number_is_no_class() {
        assert_eq!(classes(&[f32::NAN, 1.0, f32::INFINITY, 2.0, f32::NEG_INFINITY]), [3, 1]);
        assert_eq!(classes(&[f32::NAN; 3]), vec![0; 0]);
        assert_eq!(classes(&[]), vec![0; 0]);
    }

    #[test]
    fn huge_numbers_are_probabilities_too() {
        let all = top(&[f32::MAX, f32::MIN, 1e30], 9);
        assert_eq!(all[0], Likely { class: 0, probability: 1.0 });
        assert!(all.iter().all(|one| one.probability.is_finite()));
    }
}
