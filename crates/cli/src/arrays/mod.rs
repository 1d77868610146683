//! The arrays of `shoal map`: which file feeds which input of the kernel, how many items that
//! makes, and what shape the result has.

pub(crate) mod file;
mod first;
mod summary;

pub(crate) use first::first_state;
pub(crate) use summary::Summary;

use shoal_engine::intake::{ElementType, InputAsk, MapAsk, MapPlan, input_names};

use crate::args::Map;
use crate::client::Source;
use crate::fail::Fail;
use crate::npy::{self, Dtype};

/// All inputs, in the kernel's binding order.
pub(crate) struct Arrays {
    pub(crate) inputs: Vec<Array>,
}

/// One input.
pub(crate) struct Array {
    /// Its variable in the kernel.
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) is_whole: bool,
    /// Array elements each item reads.
    pub(crate) per_item: u32,
    /// How many elements away from its own an item may look, if the user says so.
    pub(crate) overlap: Option<u32>,
    file: String,
    shape: Option<Vec<u64>>,
    element: ElementType,
}

/// What comes out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    /// The header of an .npy output.
    pub(crate) npy: Option<(Dtype, Vec<u64>)>,
    /// Without an output: what the array is that is summed up, if it is one of numbers.
    pub(crate) shown: Option<(Dtype, Vec<u64>)>,
}

impl Layout {
    /// What stands before the bytes in the output's file.
    pub(crate) fn head(&self) -> Vec<u8> {
        self.npy.as_ref().map(|(dtype, shape)| npy::header(*dtype, shape)).unwrap_or_default()
    }
}

impl Arrays {
    pub(crate) fn open(args: &Map, wgsl: &str, plan: &MapPlan) -> Result<Arrays, Fail> {
        let names = input_names(wgsl, &plan.kernel);
        if args.inputs.len() != plan.inputs.len() {
            return Err(Fail::input(format!(
                "{} reads {}; {} given",
                args.kernel.display(),
                match names.len() {
                    0 => "no input arrays".into(),
                    1 => format!("one input array ({})", names[0]),
                    count => format!("{count} input arrays ({})", names.join(", ")),
                },
                match args.inputs.len() {
                    0 => "no input was".into(),
                    1 => "1 input was".into(),
                    count => format!("{count} inputs were"),
                },
            )));
        }
        if args.inputs.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
            return Err(Fail::input("stdin can be only one of the inputs: - is given twice"));
        }
        let whole = whole(&args.whole, &names)?;
        let per_item = counts("--in-per", &args.in_per, &names)?;
        let overlap = counts("--overlap", &args.overlap, &names)?;
        let mut inputs = Vec::new();
        for (position, (path, element)) in args.inputs.iter().zip(&plan.inputs).enumerate() {
            let (source, shape) = file::open(path, args.raw.as_deref(), &names[position], element)?;
            inputs.push(Array {
                name: names[position].clone(),
                source,
                is_whole: whole.contains(&position),
                per_item: per_item[position].unwrap_or(1),
                overlap: overlap[position],
                file: path.display().to_string(),
                shape,
                element: element.clone(),
            });
        }
        Ok(Arrays { inputs })
    }

    /// As the check of the kernel wants to know it.
    pub(crate) fn ask(&self, args: &Map) -> MapAsk {
        let inputs = self.inputs.iter().map(|array| InputAsk {
            whole: array.is_whole,
            per_item: if array.is_whole { 1 } else { array.per_item },
            overlap: array.overlap.filter(|_| !array.is_whole),
        });
        MapAsk { inputs: inputs.collect(), out_per_item: args.out_per, edge: args.edge.into() }
    }

    pub(crate) fn none_is_split(&self) -> bool {
        self.inputs.iter().all(|array| array.is_whole)
    }

    /// How many items there are and how the result looks.
    pub(crate) fn layout(&self, args: &Map, plan: &MapPlan) -> Result<Layout, Fail> {
        let items = self.items(args)?;
        let lanes = u64::from(plan.output.lanes) * u64::from(args.out_per);
        let item_bytes = u64::from(plan.output.stride) * u64::from(args.out_per);
        let bytes = items.checked_mul(item_bytes).ok_or_else(|| {
            Fail::input(format!("the result of {items} items would be too large"))
        })?;
        let name = args.output.as_ref().filter(|_| args.reduce.is_none());
        let end = name.and_then(|name| name.extension());
        let wants_npy = end.is_some_and(|end| end.eq_ignore_ascii_case("npy"));
        let is_shown = args.output.is_none() && args.reduce.is_none();
        let nothing = Layout { items, bytes, npy: None, shown: None };
        if !wants_npy && !is_shown {
            return Ok(nothing);
        }
        let Some(dtype) = Dtype::of_wgsl(&plan.output.scalar) else {
            if is_shown {
                return Ok(nothing);
            }
            return Err(Fail::input(format!(
                "the kernel's output is an array of {}, which .npy cannot hold: name the output \
                 without .npy",
                plan.output.name
            )));
        };
        let split = self.inputs.iter().find(|array| !array.is_whole);
        let mut shape =
            split.and_then(|array| array.item_shape(items)).unwrap_or_else(|| vec![items]);
        if lanes > 1 {
            shape.push(lanes);
        }
        let array = Some((dtype, shape));
        Ok(match is_shown {
            true => Layout { shown: array, ..nothing },
            false => Layout { npy: array, ..nothing },
        })
    }

    fn items(&self, args: &Map) -> Result<u64, Fail> {
        let mut found: Option<(&Array, u64)> = None;
        for array in self.inputs.iter().filter(|array| !array.is_whole) {
            let items = array.items()?;
            match found {
                Some((first, count)) if count != items => {
                    return Err(Fail::input(format!(
                        "{} makes {count} items, {} makes {items}: they must agree (--in-per sets \
                         what an item reads, --whole gives all of an input to every unit)",
                        first.file, array.file
                    )));
                }
                _ => found = Some((array, items)),
            }
        }
        match (found, args.items) {
            (Some((array, count)), Some(items)) if count != items => Err(Fail::input(format!(
                "--items {items} does not agree with {}, which makes {count} items",
                array.file
            ))),
            (Some((_, count)), _) => Ok(count),
            (None, Some(0)) => Err(Fail::input("--items 0: there is nothing to compute")),
            (None, Some(items)) => Ok(items),
            (None, None) => {
                Err(Fail::input("no input is split: set the number of items with --items N"))
            }
        }
    }
}

impl Array {
    fn items(&self) -> Result<u64, Fail> {
        let item_bytes = u64::from(self.element.stride) * u64::from(self.per_item);
        let bytes = self.source.size();
        if bytes == 0 {
            return Err(Fail::input(format!(
                "{} is empty: there is nothing to compute",
                self.file
            )));
        }
        if !bytes.is_multiple_of(item_bytes) {
            return Err(Fail::input(format!(
                "{} holds {bytes} bytes, which does not divide into items of {item_bytes} \
                 ({} × {})",
                self.file, self.per_item, self.element.name
            )));
        }
        Ok(bytes / item_bytes)
    }

    /// The input's shape without the last axes that one item reads.
    fn item_shape(&self, items: u64) -> Option<Vec<u64>> {
        let mut shape = self.shape.clone()?;
        loop {
            let count: u64 = shape.iter().product();
            if count == items {
                return Some(shape);
            }
            if count < items || shape.pop().is_none() {
                return None;
            }
        }
    }
}

/// Which inputs every unit gets all of.
fn whole(given: &[String], names: &[String]) -> Result<Vec<usize>, Fail> {
    given.iter().map(|text| position("--whole", text, names)).collect()
}

/// What a flag says of each input, by name or for all.
fn counts(
    flag: &str,
    given: &[(Option<String>, u32)],
    names: &[String],
) -> Result<Vec<Option<u32>>, Fail> {
    let mut counts = vec![None; names.len()];
    for (_, count) in given.iter().filter(|(name, _)| name.is_none()) {
        counts.fill(Some(*count));
    }
    for (name, count) in given {
        if let Some(name) = name {
            counts[position(flag, name, names)?] = Some(*count);
        }
    }
    Ok(counts)
}

/// An input by its name in the kernel or its number.
fn position(flag: &str, text: &str, names: &[String]) -> Result<usize, Fail> {
    let by_name = names.iter().position(|name| name == text);
    let by_number = || text.parse().ok().filter(|number| *number < names.len());
    by_name.or_else(by_number).ok_or_else(|| {
        Fail::input(format!(
            "{flag} {text}: the kernel's inputs are {} (or 0 to {})",
            names.join(", "),
            names.len().saturating_sub(1)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn array(shape: &[u64]) -> Array {
        let (name, scalar) = ("f32".into(), "f32".into());
        Array {
            name: "input".into(),
            source: Source::Memory(Bytes::new()),
            is_whole: false,
            per_item: 1,
            overlap: None,
            file: "input.npy".into(),
            shape: Some(shape.to_vec()),
            element: ElementType { name, stride: 4, scalar, lanes: 1 },
        }
    }

    #[test]
    fn an_items_own_axes_are_not_in_the_results_shape() {
        assert_eq!(array(&[3, 4]).item_shape(12), Some(vec![3, 4]));
        assert_eq!(array(&[3, 4, 2]).item_shape(12), Some(vec![3, 4]));
        assert_eq!(array(&[3, 4, 2]).item_shape(3), Some(vec![3]));
        assert_eq!(array(&[24]).item_shape(12), None, "cut across an axis: flat");
        assert_eq!(array(&[]).item_shape(1), Some(vec![]));
    }

    #[test]
    fn inputs_are_named_or_numbered() {
        let names = ["a".to_owned(), "b".to_owned()];
        assert_eq!(position("--whole", "b", &names).expect("a name"), 1);
        assert_eq!(position("--whole", "0", &names).expect("a number"), 0);
        assert!(position("--whole", "2", &names).is_err());
        let counts = counts("--in-per", &[(None, 4), (Some("b".into()), 2)], &names);
        assert_eq!(counts.expect("counts"), [Some(4), Some(2)]);
    }
}
