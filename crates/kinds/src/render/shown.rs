//! What is shown of a picture.

use serde::Serialize;

#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RenderJson {
    pub width: u32,
    pub height: u32,
    pub tile: u32,
    /// `rgba8` or `rgba32float`.
    pub pixel: &'static str,
    pub samples: u32,
}
