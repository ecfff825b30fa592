//! The carriers of 2008, and where they fly.

use Stations::{Busy, Named, State};

use super::airports::Airport;

/// A carrier that reported its flights in 2008.
pub(super) struct Carrier {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    /// Flights that it reported, which are its share.
    pub(super) flights: u64,
    /// Airports between which and others it flies, with their shares.
    pub(super) hubs: &'static [(&'static str, u64)],
    pub(super) stations: Stations,
    /// Pairs of airports, about.
    pub(super) pairs: usize,
    /// Miles of its longest flights, but those of airports that nobody else would serve.
    pub(super) miles_max: i16,
}

/// Which airports a carrier can fly to.
pub(super) enum Stations {
    /// The busier ones, from this weight on.
    Busy(u64),
    /// These, and its hubs.
    Named(&'static [&'static str]),
    /// The busier ones, and all of this state.
    State(u64, &'static str),
}

impl Carrier {
    pub(super) fn serves(&self, airport: &Airport) -> bool {
        if self.hubs.iter().any(|(code, _)| *code == airport.code) {
            return true;
        }
        match self.stations {
            Busy(weight) => airport.weight >= weight,
            Named(codes) => codes.contains(&airport.code),
            State(weight, state) => airport.weight >= weight || airport.state == state,
        }
    }
}

const SOUTHWEST: &[&str] = &[
    "ABQ", "ALB", "AMA", "AUS", "BDL", "BHM", "BNA", "BOI", "BUF", "BUR", "CLE", "CMH", "CRP",
    "DTW", "ELP", "FLL", "GEG", "HRL", "IAD", "IND", "ISP", "JAN", "JAX", "LBB", "LIT", "MAF",
    "MCI", "MHT", "MSY", "OKC", "OMA", "ONT", "ORF", "PBI", "PDX", "PHL", "PIT", "PVD", "RDU",
    "RNO", "RSW", "SAN", "SAT", "SDF", "SEA", "SFO", "SJC", "SLC", "SMF", "SNA", "STL", "TUL",
    "TUS",
];
const HAWAIIAN: &[&str] = &[
    "OGG", "KOA", "LIH", "ITO", "LAX", "SFO", "SEA", "PDX", "SAN", "SMF", "LAS", "PHX", "SJC",
    "OAK",
];
const ALOHA: &[&str] = &[
    "OGG", "KOA", "LIH", "ITO", "OAK", "SNA", "SAN", "SMF", "LAS",
];

/// Every carrier; who flies to airports that are left over is found by [`keeper`].
pub(super) const CARRIERS: &[Carrier] = &[
    Carrier {
        code: "WN",
        name: "Southwest Airlines",
        flights: 1_201_754,
        hubs: &[
            ("LAS", 10),
            ("MDW", 12),
            ("PHX", 9),
            ("BWI", 9),
            ("HOU", 10),
            ("DAL", 11),
            ("OAK", 8),
            ("LAX", 4),
            ("MCO", 5),
            ("DEN", 3),
            ("TPA", 5),
        ],
        stations: Named(SOUTHWEST),
        pairs: 480,
        miles_max: 2400,
    },
    Carrier {
        code: "AA",
        name: "American Airlines",
        flights: 604_885,
        hubs: &[
            ("DFW", 12),
            ("ORD", 8),
            ("MIA", 9),
            ("STL", 2),
            ("LGA", 2),
            ("JFK", 3),
            ("SJU", 2),
        ],
        stations: Busy(1000),
        pairs: 288,
        miles_max: 5000,
    },
    Carrier {
        code: "OO",
        name: "Skywest Airlines",
        flights: 567_159,
        hubs: &[
            ("SLC", 12),
            ("DEN", 8),
            ("LAX", 9),
            ("SFO", 10),
            ("ORD", 4),
            ("PDX", 3),
            ("SEA", 3),
        ],
        stations: Busy(100),
        pairs: 504,
        miles_max: 1100,
    },
    Carrier {
        code: "MQ",
        name: "American Eagle Airlines",
        flights: 490_693,
        hubs: &[
            ("DFW", 12),
            ("ORD", 10),
            ("MIA", 3),
            ("LAX", 4),
            ("LGA", 3),
            ("BOS", 2),
            ("SJU", 3),
        ],
        stations: Busy(200),
        pairs: 396,
        miles_max: 1000,
    },
    Carrier {
        code: "US",
        name: "US Airways",
        flights: 453_589,
        hubs: &[
            ("CLT", 12),
            ("PHX", 9),
            ("PHL", 10),
            ("LAS", 5),
            ("DCA", 4),
            ("LGA", 4),
            ("BOS", 3),
            ("PIT", 3),
        ],
        stations: Busy(800),
        pairs: 300,
        miles_max: 4900,
    },
    Carrier {
        code: "DL",
        name: "Delta Air Lines",
        flights: 451_931,
        hubs: &[
            ("ATL", 14),
            ("SLC", 7),
            ("CVG", 5),
            ("JFK", 5),
            ("MCO", 2),
            ("LAX", 2),
        ],
        stations: Busy(700),
        pairs: 300,
        miles_max: 4600,
    },
    Carrier {
        code: "UA",
        name: "United Air Lines",
        flights: 449_515,
        hubs: &[("ORD", 12), ("DEN", 10), ("SFO", 8), ("LAX", 7), ("IAD", 7)],
        stations: Busy(1000),
        pairs: 276,
        miles_max: 4900,
    },
    Carrier {
        code: "XE",
        name: "Expressjet Airlines",
        flights: 374_510,
        hubs: &[("IAH", 12), ("EWR", 11), ("CLE", 11), ("ONT", 4)],
        stations: Busy(300),
        pairs: 360,
        miles_max: 1300,
    },
    Carrier {
        code: "NW",
        name: "Northwest Airlines",
        flights: 347_652,
        hubs: &[("MSP", 12), ("DTW", 11), ("MEM", 10), ("IND", 2)],
        stations: Busy(600),
        pairs: 252,
        miles_max: 4700,
    },
    Carrier {
        code: "CO",
        name: "Continental Air Lines",
        flights: 298_455,
        hubs: &[("IAH", 12), ("EWR", 12), ("CLE", 6)],
        stations: Busy(1000),
        pairs: 192,
        miles_max: 5000,
    },
    Carrier {
        code: "EV",
        name: "Atlantic Southeast Airlines",
        flights: 280_575,
        hubs: &[("ATL", 14), ("CVG", 2), ("LAX", 1)],
        stations: Busy(150),
        pairs: 228,
        miles_max: 1000,
    },
    Carrier {
        code: "9E",
        name: "Pinnacle Airlines",
        flights: 262_208,
        hubs: &[("MEM", 11), ("MSP", 9), ("DTW", 10), ("IND", 2)],
        stations: Busy(150),
        pairs: 288,
        miles_max: 1000,
    },
    Carrier {
        code: "FL",
        name: "AirTran Airways",
        flights: 261_684,
        hubs: &[("ATL", 14), ("MCO", 6), ("BWI", 4), ("MKE", 5)],
        stations: Busy(1700),
        pairs: 168,
        miles_max: 2400,
    },
    Carrier {
        code: "YV",
        name: "Mesa Airlines",
        flights: 254_930,
        hubs: &[("PHX", 11), ("CLT", 7), ("IAD", 8), ("ORD", 4), ("DEN", 4)],
        stations: Busy(180),
        pairs: 276,
        miles_max: 1100,
    },
    Carrier {
        code: "OH",
        name: "Comair",
        flights: 197_607,
        hubs: &[("CVG", 12), ("JFK", 8), ("ATL", 3), ("MCO", 2), ("LGA", 3)],
        stations: Busy(200),
        pairs: 264,
        miles_max: 1000,
    },
    Carrier {
        code: "B6",
        name: "JetBlue Airways",
        flights: 196_091,
        hubs: &[
            ("JFK", 13),
            ("BOS", 8),
            ("FLL", 5),
            ("MCO", 5),
            ("LGB", 5),
            ("IAD", 3),
        ],
        stations: Busy(1200),
        pairs: 144,
        miles_max: 2700,
    },
    Carrier {
        code: "AS",
        name: "Alaska Airlines",
        flights: 151_102,
        hubs: &[("SEA", 13), ("ANC", 30), ("PDX", 7), ("LAX", 3)],
        stations: State(3800, "AK"),
        pairs: 120,
        miles_max: 2800,
    },
    Carrier {
        code: "F9",
        name: "Frontier Airlines",
        flights: 95_762,
        hubs: &[("DEN", 10)],
        stations: Busy(1600),
        pairs: 72,
        miles_max: 1900,
    },
    Carrier {
        code: "HA",
        name: "Hawaiian Airlines",
        flights: 61_826,
        hubs: &[("HNL", 10), ("OGG", 1)],
        stations: Named(HAWAIIAN),
        pairs: 21,
        miles_max: 2800,
    },
    Carrier {
        code: "AQ",
        name: "Aloha Airlines",
        flights: 7_800,
        hubs: &[("HNL", 10), ("OGG", 1)],
        stations: Named(ALOHA),
        pairs: 14,
        miles_max: 2800,
    },
];

/// Who flies to an airport of a state if nobody else does, by its code, and from where; none: one of the regional
/// carriers, from its nearest hub.
pub(super) fn keeper(state: &str) -> Option<(&'static str, &'static str)> {
    match state {
        "AK" => Some(("AS", "ANC")),
        "HI" => Some(("HA", "HNL")),
        "PR" | "VI" => Some(("MQ", "SJU")),
        _ => None,
    }
}

/// The carriers that fly to small airports for others.
pub(super) const REGIONAL: &[&str] = &["OO", "MQ", "XE", "EV", "9E", "YV", "OH"];
