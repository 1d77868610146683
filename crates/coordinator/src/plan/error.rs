//! Why a job is refused before it is submitted.

use std::io;

use shoal_protocol::Hash;
use shoal_protocol::limit::{MAX_KERNEL_BYTES, MAX_UNIT_BYTES};

use shoal_protocol::IntakeError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("the body is no JSON: {0}")]
    Json(String),
    #[error("the request is not understood: {0}")]
    Request(String),
    #[error("{0}")]
    Intake(#[from] IntakeError),
    #[error("the kernel has {size} bytes; at most {MAX_KERNEL_BYTES} are allowed")]
    KernelTooLarge { size: usize },
    #[error("the module has {size} bytes; at most {most} are allowed")]
    ModuleTooLarge { size: u64, most: u64 },
    #[error("{what}: {hash:?} is no BLAKE3 hash; expected 64 hexadecimal digits")]
    BadHash { what: String, hash: String },
    #[error("{what}: no blob {hash} is stored; upload it first with PUT /api/v1/blobs/{hash}")]
    NoBlob { what: String, hash: Hash },
    #[error(
        "{what}: the stored bytes of blob {hash} were damaged and are dropped: upload it again"
    )]
    Torn { what: String, hash: Hash },
    #[error("the input is empty: there is nothing to compute")]
    Empty,
    #[error("{what} is empty: there is nothing to compute")]
    EmptyInput { what: String },
    #[error(
        "the kernel reads {expected} arrays ({types}), but {given} inputs are given: one is needed for each"
    )]
    InputCount { expected: usize, given: usize, types: String },
    #[error(
        "input {input} has {size} bytes, which is no multiple of {each} (an item is {per_item} x {element} of {stride} bytes): {over} bytes are left over"
    )]
    NotDivisible {
        input: usize,
        size: u64,
        each: u64,
        per_item: u32,
        element: String,
        stride: u32,
        over: u64,
    },
    #[error(
        "input {input} is said to hold {given}, but the kernel reads array<{element}>: {advice}, or leave \"type\" out to have the bytes taken as they are"
    )]
    WrongType { input: usize, given: String, element: String, advice: String },
    #[error(
        "{one} has {items} items, but {other} has {others}: all split inputs must have as many"
    )]
    ItemsDiffer { one: String, items: u64, other: String, others: u64 },
    #[error("no input is split, so \"items\" must say how many items there are")]
    ItemsMissing,
    #[error(
        "there are {items} items, but the kernel's parameter block counts them with u32: at most {} are allowed",
        u32::MAX
    )]
    TooManyItems { items: u64 },
    #[error(
        "the kernel looks beyond its own items, and there are {elements} elements: at most {most} are allowed then"
    )]
    TooManyElements { elements: u64, most: u64 },
    #[error(
        "{name}: an overlap of {bytes} bytes is more than a unit should carry; say --whole (\"whole\": true) to give all of it to every unit"
    )]
    Overlap { name: String, bytes: u64 },
    #[error(
        "items read {name} anywhere (line {line} of the kernel), and it has {size} bytes; at most {most} are given to every device unasked. Say --overlap N (\"overlap\") if items look at most N elements away, --whole (\"whole\": true) if every device should have all of it"
    )]
    Anywhere { name: String, line: u32, size: u64, most: u64 },
    #[error(
        "with edge wrap items at one end read the other end of {name}, and it has {size} bytes; at most {most} are given to every device unasked: say --whole (\"whole\": true) if every device should have all of it"
    )]
    Ring { name: String, size: u64, most: u64 },
    #[error(
        "items of one workgroup have to do with each other, so units are whole workgroups: \"unit\" is {unit}, which is no multiple of {workgroup}"
    )]
    UnitCutsGroups { unit: u64, workgroup: u64 },
    #[error(
        "items of one workgroup have to do with each other, but a workgroup of {workgroup} does not fit into a unit, which holds at most {most} items"
    )]
    GroupTooLarge { workgroup: u64, most: u64 },
    #[error(
        "with a reduction units are blocks of items: \"unit\" is {unit}, which is no multiple of {block}"
    )]
    UnitCutsBlocks { unit: u64, block: u64 },
    #[error(
        "a reduction takes blocks of {block} items, and one has {bytes} bytes here; at most {MAX_UNIT_BYTES} are allowed: run the map without it first, and reduce its result"
    )]
    BlockTooLarge { bytes: u64, block: u64 },
    #[error("{what} must be at least 1")]
    Zero { what: &'static str },
    #[error("one item takes {bytes} bytes; at most {MAX_UNIT_BYTES} are allowed")]
    ItemTooLarge { bytes: u64 },
    #[error("the file {name:?} has {size} bytes; at most {most} are allowed")]
    FileTooLarge { name: String, size: u64, most: u64 },
    #[error("the files of \"folder\" have {size} bytes together; at most {most} are allowed")]
    FolderTooLarge { size: u64, most: u64 },
    #[error("\"unit\" must be at least 1")]
    UnitEmpty,
    #[error("\"unit\" is {unit}, but one unit of this job may hold at most {most} items")]
    UnitTooLarge { unit: u64, most: u64 },
    #[error("limit {which} is {value}; it must be above 0 and at most {most}")]
    Limit { which: &'static str, value: String, most: u64 },
    #[error("the picture is {width} x {height}; each side must be from 1 to {most} pixels")]
    Picture { width: u32, height: u32, most: u32 },
    #[error("a tile of {tile} pixels is asked for; it must be from 8 to {most}")]
    Tile { tile: u32, most: u32 },
    #[error("the grid is {width} x {height}; each side must be from 1 to {most} cells")]
    Grid { width: u32, height: u32, most: u32 },
    #[error("the grid has {bytes} bytes; at most {most} are allowed")]
    GridTooLarge { bytes: u64, most: u64 },
    #[error("\"steps\" is {steps}; it must be from 1 to {most}")]
    Steps { steps: u64, most: u64 },
    #[error(
        "the halo is {halo} rows, but the grid has only {height}: a band must be at least as high as the halo"
    )]
    Halo { halo: u32, height: u32 },
    #[error(
        "{halo} rows of halo are {bytes} bytes, sent with every step; at most {most} are allowed"
    )]
    HaloTooLarge { halo: u32, bytes: u64, most: u64 },
    #[error("\"members\" is {members}; it must be from 1 to {most}")]
    Members { members: u32, most: usize },
    #[error(
        "{members} members need at least {halo} rows each, as many as the halo has; the grid has only {height}"
    )]
    TooManyMembers { members: u32, halo: u32, height: u32 },
    #[error(
        "\"first\" has {size} bytes, but {height} rows of {width} cells of {cell} bytes are {expected}"
    )]
    FirstSize { size: u64, expected: u64, width: u32, height: u32, cell: u32 },
    #[error("\"{field}\" is not for simulations: {why}")]
    NotForCrews { field: &'static str, why: &'static str },
    #[error(
        "crews are not verified by repetition: their members depend on each other at every step; leave \"verify\" out or say none"
    )]
    CrewChecked,
    #[error("give either \"lines\" or \"files\", not both")]
    LinesAndFiles,
    #[error(
        "the name {name:?} in \"folder\" cannot be used: names are relative, with no empty, \".\" or \"..\" parts, and each is used once"
    )]
    FolderName { name: String },
    #[error("the text has more than {most} runs: put more lines into each with \"perRun\"")]
    TooManyRuns { most: u64 },
    #[error("{what} cannot be passed to a program: {text:?} holds a NUL or, in a name, a \"=\"")]
    Unpassable { what: &'static str, text: String },
    #[error(
        "\"verify\" is {text:?}; expected none, spot, spot:0.25, quorum:3 (2 to 15) or adaptive"
    )]
    Verify { text: String },
    #[error(
        "a program that sees the real time (\"clock\": true) may answer differently each time, so its answers cannot be checked: leave \"verify\" out or say none"
    )]
    ClockChecked,
    #[error(
        "\"tolerance\" is for float outputs; this job's answers are compared bit for bit: leave it out"
    )]
    ToleranceExact,
    #[error("tolerance {which} is {value}; it must be a number from 0 up")]
    Tolerance { which: &'static str, value: f32 },
    #[error("\"weight\" is {weight}; it must be from 1 to {most}")]
    Weight { weight: u32, most: u32 },
    #[error("a noop has no code that could be signed: leave \"signature\" out")]
    NothingToSign,
    #[error("the signature is refused: {0}")]
    BadSignature(String),
    #[error("the disk failed: {0}")]
    Disk(#[source] io::Error),
}
