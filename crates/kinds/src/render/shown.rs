//! What is shown of a picture.

use serde::{Deserialize, Serialize};

use super::Pixel;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RenderJson {
    pub width: u32,
    pub height: u32,
    pub tile: u32,
    pub pixel: Pixel,
    pub samples: u32,
}
