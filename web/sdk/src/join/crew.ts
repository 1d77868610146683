/** Crews this device is in, for the donor's eyes. */

export interface CrewNote {
  crew: number;
  /** The simulation; left out where an application talks. */
  job?: number;
  name: string;
  members: number;
  rank: number;
  /** Its band: the first row, and how many. */
  rows?: { start: number; len: number };
  /** Steps done here. */
  step: number;
  links: LinkNote[];
}

export interface LinkNote {
  /** The other's number in the pool. */
  peer: number;
  via: "relay" | "direct";
  roundTripMs: number;
  /** Megabytes a second, known while the link was full lately. */
  mbps?: number;
}
