//! Pictures for JavaScript: made small before they are sent, and what was found in them named. By the same code as the
//! command line's and the nodes', so that all find the same boxes.

use shoal_vision::{Fit, Form, Layout, Names, Picture, Preparation, colour, letterboxed};
use wasm_bindgen::prelude::*;

/// Pixels in rows from the top, each red, green, blue.
#[wasm_bindgen]
pub struct Pixels {
    pub width: u32,
    pub height: u32,
    rgb: Vec<u8>,
}

#[wasm_bindgen]
impl Pixels {
    /// What a canvas gives (red, green, blue and how opaque) as large as a model that takes `across` by `down` sees it: a
    /// larger picture shrinks, a smaller one is left alone.
    pub fn shrunk(
        rgba: &[u8],
        width: u32,
        height: u32,
        across: u32,
        down: u32,
    ) -> Result<Pixels, JsError> {
        let (pixels, _) = rgba.as_chunks::<4>();
        let rgb: Vec<u8> =
            pixels.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect();
        let size = (width as usize, height as usize);
        let picture = Picture::new(size.0, size.1, &rgb)?;
        let (to_x, to_y) = letterboxed((across as usize, down as usize), size);
        if to_x >= size.0 && to_y >= size.1 {
            return Ok(Pixels { width, height, rgb });
        }
        let (fit, layout) = (Fit::Stretch, Layout::Nhwc);
        let small = Preparation { fit, layout, ..Preparation::plain(to_x, to_y) };
        let rgb = small.pixels(&picture)?.values;
        Ok(Pixels { width: to_x as u32, height: to_y as u32, rgb })
    }

    /// The bytes. There are none left afterwards.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rgb)
    }
}

/// What a detector's classes are called.
#[wasm_bindgen]
pub struct Classes(Names);

#[wasm_bindgen]
impl Classes {
    /// By the shape of the model's output. Throws if it is no detector's.
    pub fn of(shape: &[u32]) -> Result<Classes, JsError> {
        let shape: Vec<usize> = shape.iter().map(|dim| *dim as usize).collect();
        Ok(Classes(Names::for_count(Form::of(&shape, None)?.classes)))
    }

    pub fn name(&self, class: u32) -> String {
        self.0.of(class as usize).into()
    }

    /// Red, green, blue.
    pub fn colour(class: u32) -> Vec<u8> {
        colour(class as usize).into()
    }
}
