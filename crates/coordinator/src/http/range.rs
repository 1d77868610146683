//! `Range` requests over anything that has a length.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::store::send::Extent;

/// What part of the whole is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    All,
    Part(Extent),
    /// Outside the whole.
    Nothing,
}

impl Asked {
    /// Reads `Range: bytes=…`. What is not understood, or asks for several parts, gets the whole, as
    /// the standard allows.
    pub(super) fn of(headers: &HeaderMap, size: u64) -> Asked {
        let value = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
        let Some(spec) = value.and_then(|value| value.strip_prefix("bytes=")) else {
            return Asked::All;
        };
        let Some((first, last)) = spec.trim().split_once('-') else { return Asked::All };
        match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
            (Ok(first), Ok(last)) if first > last => Asked::All,
            (Ok(first), _) if first >= size => Asked::Nothing,
            (Ok(first), Ok(last)) => part(first, last.min(size - 1)),
            (Ok(first), Err(_)) if last.trim().is_empty() => part(first, size.saturating_sub(1)),
            (Err(_), Ok(0)) if first.trim().is_empty() => Asked::Nothing,
            (Err(_), Ok(suffix)) if first.trim().is_empty() && size > 0 => {
                part(size.saturating_sub(suffix), size - 1)
            }
            _ => Asked::All,
        }
    }

    pub(super) fn extent(&self, size: u64) -> Extent {
        match self {
            Asked::All => Extent { offset: 0, len: size },
            Asked::Part(extent) => *extent,
            Asked::Nothing => Extent { offset: size, len: 0 },
        }
    }
}

fn part(first: u64, last: u64) -> Asked {
    Asked::Part(Extent { offset: first, len: (last + 1).saturating_sub(first) })
}

/// The answer around a body that holds what was asked for.
pub(super) fn response(asked: Asked, size: u64, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let extent = asked.extent(size);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_LENGTH, extent.len.into());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Asked::Part(Extent { offset, len }) = asked {
        let text = format!("bytes {offset}-{}/{size}", (offset + len).saturating_sub(1));
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(header::CONTENT_RANGE, value);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(range: &str, size: u64) -> Asked {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, range.parse().unwrap());
        Asked::of(&headers, size)
    }

    #[test]
    fn parts_are_cut_to_the_whole() {
        assert_eq!(asked("bytes=0-3", 10), part(0, 3));
        assert_eq!(asked("bytes=5-", 10), part(5, 9));
        assert_eq!(asked("bytes=5-99", 10), part(5, 9));
        assert_eq!(asked("bytes=-4", 10), part(6, 9));
        assert_eq!(asked("bytes=-40", 10), part(0, 9));
        assert_eq!(asked("bytes=0-0", 1), part(0, 0));
    }

    #[test]
    fn what_lies_outside_is_refused_and_what_is_odd_gets_everything() {
        assert_eq!(asked("bytes=10-", 10), Asked::Nothing);
        assert_eq!(asked("bytes=10-12", 10), Asked::Nothing);
        assert_eq!(asked("bytes=0-1", 0), Asked::Nothing);
        assert_eq!(asked("bytes=-0", 10), Asked::Nothing);
        assert_eq!(asked("bytes=3-1", 10), Asked::All);
        assert_eq!(asked("lines=1-2", 10), Asked::All);
        assert_eq!(asked("bytes=0-1,3-4", 10), Asked::All);
        assert_eq!(asked("bytes=x-y", 10), Asked::All);
        assert_eq!(Asked::of(&HeaderMap::new(), 10), Asked::All);
    }
}
