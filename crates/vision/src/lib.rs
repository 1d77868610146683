//! Pictures into what vision models take, and what they give into what people understand: boxes, classes and names.
//! Pure: it decides everything and touches nothing. Its shells are the command line and the browser, which read and write
//! pictures and run the model.
//!
//! ```
//! use shoal_vision::{Names, Picture, Preparation, Thresholds, detect, draw};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut rgb = vec![128; 64 * 48 * 3];
//! // The pixels of a file, in rows of red, green and blue.
//! let picture = Picture::new(64, 48, &rgb)?;
//!
//! // The numbers for a detector that takes 32x32, and where the picture lies among them.
//! let preparation = Preparation::detector(32, 32);
//! let prepared = preparation.numbers(&picture)?;
//! assert_eq!(prepared.values.len(), preparation.shape().iter().product());
//!
//! // What the model says: here a single box, in the form of end-to-end detectors.
//! let (shape, output) = ([1, 1, 6], [8.0, 8.0, 24.0, 24.0, 0.87, 0.0]);
//! let names = Names::parse("{0: 'person', 1: 'bicycle'}")?;
//! let thresholds = Thresholds::default();
//! let found = detect(&shape, &output, Some(names.count()), &prepared.placing, thresholds)?;
//! assert_eq!((found[0].left, found[0].right), (16.0, 48.0));
//!
//! // Into the picture, with `person 0.87` above it.
//! draw(64, 48, &mut rgb, &found, &names)?;
//! # Ok(())
//! # }
//! ```
//!
//! The same inputs give the same outputs, natively and in tabs: no function here depends on the machine.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod boxes;
mod classes;
mod draw;
mod form;
mod names;
mod prepare;
mod resize;

pub use boxes::{Detection, Thresholds, detect, suppress};
pub use classes::{Likely, top};
pub use draw::{colour, draw};
pub use form::{BoxesError, Form, Kind};
pub use names::{Names, NamesError};
pub use prepare::{
    Fit, Layout, Picture, PictureError, Placing, Preparation, PrepareError, Prepared, letterboxed,
};
