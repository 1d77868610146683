//! What types are called in TypeScript, where that is not their name in Rust, and where TypeScript has a finer type
//! than a schema can say. Users of the SDK import these names: they stay.

/// Most types in Rust end so, because what they are made from has the plain name.
const SUFFIX: &str = "Json";

const NAMES: &[(&str, &str)] = &[
    ("AbleJson", "ServiceAble"),
    ("ArrayJson", "KernelArray"),
    ("BlobJson", "BlobRef"),
    ("ChangeJson", "CrewChange"),
    ("CodeJson", "ReceiptCode"),
    ("ConditionJson", "DeviceCondition"),
    ("CrewJson", "CrewInfo"),
    ("EngineJson", "EngineInfo"),
    ("ErrorJson", "ErrorAnswer"),
    ("ExplainJson", "Explanation"),
    ("ExplainServiceJson", "ServiceExplanation"),
    ("FailureJson", "FailedInput"),
    ("FailuresJson", "FailedInputList"),
    ("FileJson", "StoredFile"),
    ("LeftFileJson", "LeftFile"),
    ("LeftJson", "LeftByRun"),
    ("LeftListJson", "LeftList"),
    ("FileRequest", "ExecFile"),
    ("GpuJson", "GpuInfo"),
    ("InputsJson", "JobInputs"),
    ("JobsJson", "JobList"),
    ("KernelJson", "KernelInfo"),
    ("LinesRequest", "ExecLines"),
    ("LiveJson", "InferenceLive"),
    ("LinkJson", "CrewLink"),
    ("MapInputRequest", "MapRequestInput"),
    ("MemberJson", "CrewMember"),
    ("MissingJson", "MissingItems"),
    ("ModelJson", "ModelInfo"),
    ("NodeJson", "PoolNode"),
    ("NodesJson", "NodeList"),
    ("OffersJson", "PoolOffers"),
    ("OnnxInputRequest", "OnnxRequestInput"),
    ("OpJson", "MapReduceOp"),
    ("OutputJson", "JobOutput"),
    ("PartJson", "StoredPart"),
    ("PartialJson", "UploadOffset"),
    ("PoolJson", "PoolInfo"),
    ("PortJson", "ModelPort"),
    ("PlacedJson", "ServicePlaced"),
    ("PlacementJson", "ServicePlacement"),
    ("PokeRequest", "Poke"),
    ("ReadyJson", "InferenceReady"),
    ("ReduceJson", "MapReduce"),
    ("ReducedJson", "MapReduced"),
    ("RelayJson", "PoolRelay"),
    ("RenderJson", "RenderInfo"),
    ("ResultJson", "JobResult"),
    ("ServerJson", "InferenceServer"),
    ("ServicesJson", "ServiceList"),
    ("SignatureJson", "CodeSignature"),
    ("SimJson", "SimInfo"),
    ("SpanJson", "ItemSpan"),
    ("SplitJson", "ServiceSplit"),
    ("StageJson", "ServiceStage"),
    ("StateJson", "JobState"),
    ("SubmitJobJson", "SubmitJobAnswer"),
    ("TensorJson", "JobTensor"),
    ("TilesJson", "TileList"),
    ("TotalJson", "SimTotal"),
    ("UnitsJson", "UnitList"),
    ("ViaJson", "CrewVia"),
    ("WayJson", "RelayWay"),
];

/// Fields whose type is written by hand in `web/sdk/src/types.ts`, and that type.
const FINER: &[(&str, &str, &str)] = &[
    ("CommonRequest", "verify", "Verify"),
    ("JobJson", "kind", "JobKind"),
    ("KernelRequest", "params", "Params"),
    ("MapRequest", "params", "Params"),
    ("ReceiptJson", "kind", "JobKind"),
    ("RenderRequest", "params", "Params"),
    ("SimRequest", "params", "Params"),
];

/// What a schema is called in TypeScript.
pub(super) fn name(schema: &str) -> &str {
    let known = NAMES.iter().find(|(rust, _)| *rust == schema);
    known.map_or_else(|| schema.strip_suffix(SUFFIX).unwrap_or(schema), |(_, name)| name)
}

/// The finer type of a field.
pub(super) fn finer(schema: &str, field: &str) -> Option<&'static str> {
    let found = FINER.iter().find(|(of, name, _)| *of == schema && *name == field);
    found.map(|(_, _, finer)| *finer)
}

/// All that is written by hand and used here.
pub(super) fn by_hand() -> Vec<&'static str> {
    let mut names: Vec<_> = FINER.iter().map(|(_, _, finer)| *finer).collect();
    names.sort_unstable();
    names.dedup();
    names
}
