//! The newest pictures of simulations, and who looks at them. In memory only: members send new ones while
//! somebody looks.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_protocol::limit::MAX_VIEW_SIDE;
use shoal_protocol::{JobId, Span};
use tokio::sync::watch;

/// Fields kept: each is at most 1 MiB, and nobody looks at more.
const MAX_FIELDS: usize = 64;
/// Bytes of a pixel.
const PIXEL: usize = 4;

#[derive(Default)]
pub(crate) struct Fields(Mutex<BTreeMap<JobId, Field>>);

struct Field {
    canvas: Option<Canvas>,
    /// Rises with every picture.
    version: watch::Sender<u64>,
    /// How many look now, and how many ever did.
    lookers: u64,
    looks: u64,
    /// Somebody looks, or did a moment ago.
    watched: bool,
}

#[derive(Clone)]
struct Canvas {
    width: usize,
    height: usize,
    step: u64,
    rgba: Arc<Vec<u8>>,
}

/// The field as last seen.
#[derive(Clone)]
pub(crate) struct Picture {
    pub(crate) version: u64,
    /// The newest step that is in it.
    pub(crate) step: u64,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) rgba: Arc<Vec<u8>>,
}

/// A band's picture: its pixels lie where column and row of the grid are multiples of the stride.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Band {
    /// Cells of the whole grid.
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Rows of the grid that are shown.
    pub(crate) rows: Span,
    pub(crate) stride: u32,
    pub(crate) step: u64,
}

impl Band {
    /// The finest stride at which a grid's picture is not too large.
    pub(crate) fn finest(width: u32, height: u32) -> u32 {
        width.max(height).div_ceil(MAX_VIEW_SIDE).max(1)
    }

    fn row_bytes(&self) -> usize {
        self.width.div_ceil(self.stride) as usize * PIXEL
    }

    /// Rows of the whole picture.
    fn high(&self) -> usize {
        self.height.div_ceil(self.stride) as usize
    }

    /// Its rows in the whole picture.
    fn shown(&self) -> Range<usize> {
        let stride = u64::from(self.stride);
        let row = |row: u64| usize::try_from(row.div_ceil(stride)).unwrap_or(usize::MAX);
        row(self.rows.start)..row(self.rows.end())
    }

    /// How large its picture is.
    pub(crate) fn bytes(&self) -> usize {
        self.row_bytes() * self.shown().len()
    }
}

impl Fields {
    /// Puts a band's picture, of [`Band::bytes`], into its field. The band lies in its grid.
    pub(crate) fn paint(&self, job: JobId, band: &Band, rgba: &[u8]) {
        let each = band.row_bytes();
        let mut fields = self.fields();
        make_room(&mut fields, job);
        let field = fields.entry(job).or_default();
        let (width, height) = (each / PIXEL, band.high());
        let fits = |canvas: &Canvas| (canvas.width, canvas.height) == (width, height);
        let mut canvas = field.canvas.take().filter(fits).unwrap_or_else(|| Canvas {
            width,
            height,
            step: 0,
            rgba: Arc::new(vec![0; each * height]),
        });
        let pixels = Arc::make_mut(&mut canvas.rgba);
        let Range { start, end } = band.shown();
        if let Some(part) = pixels.get_mut(start * each..end * each)
            && part.len() == rgba.len()
        {
            part.copy_from_slice(rgba);
        }
        // After a restart from a checkpoint it goes back.
        canvas.step = band.step;
        field.canvas = Some(canvas);
        field.version.send_modify(|version| *version += 1);
    }

    /// The field's newest picture, if there is any.
    pub(crate) fn picture(&self, job: JobId) -> Option<Picture> {
        let fields = self.fields();
        let field = fields.get(&job)?;
        let version = *field.version.borrow();
        let canvas = field.canvas.as_ref()?;
        Some(Picture {
            version,
            step: canvas.step,
            width: canvas.width as u32,
            height: canvas.height as u32,
            rgba: Arc::clone(&canvas.rgba),
        })
    }

    /// Somebody looks from now on; the receiver hears of every new picture.
    pub(crate) fn look(&self, job: JobId) -> watch::Receiver<u64> {
        let mut fields = self.fields();
        make_room(&mut fields, job);
        let field = fields.entry(job).or_default();
        field.lookers += 1;
        field.looks += 1;
        field.watched = true;
        field.version.subscribe()
    }

    /// Somebody looks no longer. Says how many ever looked, to be asked about later.
    pub(crate) fn look_away(&self, job: JobId) -> u64 {
        let mut fields = self.fields();
        let Some(field) = fields.get_mut(&job) else { return 0 };
        field.lookers = field.lookers.saturating_sub(1);
        field.looks
    }

    /// If nobody looked since [`Fields::look_away`], nobody watches any more. Says whether that changed.
    pub(crate) fn lose_interest(&self, job: JobId, looks: u64) -> bool {
        let mut fields = self.fields();
        let Some(field) = fields.get_mut(&job) else { return false };
        let lost = field.watched && field.lookers == 0 && field.looks == looks;
        field.watched &= !lost;
        lost
    }

    pub(crate) fn is_watched(&self, job: JobId) -> bool {
        self.fields().get(&job).is_some_and(|field| field.watched)
    }

    /// The job is gone.
    pub(crate) fn forget(&self, job: JobId) {
        self.fields().remove(&job);
    }

    fn fields(&self) -> MutexGuard<'_, BTreeMap<JobId, Field>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Field {
    fn default() -> Field {
        let version = watch::Sender::new(0);
        Field { canvas: None, version, lookers: 0, looks: 0, watched: false }
    }
}

/// The oldest job's field at which nobody looks goes first.
fn make_room(fields: &mut BTreeMap<JobId, Field>, job: JobId) {
    if fields.len() < MAX_FIELDS || fields.contains_key(&job) {
        return;
    }
    let unseen = fields.iter().find(|(_, field)| field.lookers == 0 && !field.watched);
    if let Some(oldest) = unseen.map(|(job, _)| *job) {
        fields.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(start: u64, len: u64, stride: u32) -> Band {
        Band { width: 4, height: 6, rows: Span::new(start, len), stride, step: 7 }
    }

    #[test]
    fn bands_are_put_together_where_they_belong() {
        let fields = Fields::default();
        let job = JobId(1);
        fields.paint(job, &band(2, 4, 1), &[9; 64]);
        fields.paint(job, &band(0, 2, 1), &[5; 32]);
        let picture = fields.picture(job).unwrap();
        assert_eq!((picture.version, picture.step), (2, 7));
        assert_eq!((picture.width, picture.height), (4, 6));
        assert_eq!(**picture.rgba, [vec![5; 32], vec![9; 64]].concat());
    }

    #[test]
    fn a_coarse_picture_has_the_rows_at_multiples_of_its_stride() {
        // Of rows 3 to 5 only row 4 is shown, which is the third of rows 0, 2, 4.
        assert_eq!((band(3, 3, 2).shown(), band(3, 3, 2).bytes()), (2..3, 8));
        assert_eq!((band(0, 3, 2).shown(), band(0, 3, 2).bytes()), (0..2, 16));
        assert_eq!(band(1, 1, 2).bytes(), 0);
        assert_eq!(Band::finest(4, 6), 1);
        assert_eq!(Band::finest(1025, 6), 3);
    }

    #[test]
    fn interest_is_lost_only_if_nobody_looked_since() {
        let (fields, job) = (Fields::default(), JobId(1));
        fields.look(job);
        let looks = fields.look_away(job);
        fields.look(job);
        assert!(!fields.lose_interest(job, looks));
        assert!(fields.is_watched(job));
        let looks = fields.look_away(job);
        assert!(fields.lose_interest(job, looks));
        assert!(!fields.is_watched(job));
        assert!(!fields.lose_interest(job, looks));
    }
}
