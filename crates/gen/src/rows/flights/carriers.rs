//! The carriers of 2008, where they fly, and what with.

use Stations::{Busy, Named, State};

use super::airports::Airport;
use super::planes::Model;

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
    /// What it flies; those for long ways come last.
    pub(super) fleet: &'static [Model],
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
        fleet: &[
            Model::new(
                "BOEING",
                "737-3H4",
                "Turbo-Fan",
                (300, "SW", 180),
                (1984, 1998),
            ),
            Model::new(
                "BOEING",
                "737-5H4",
                "Turbo-Fan",
                (501, "SW", 25),
                (1990, 1992),
            ),
            Model::new(
                "BOEING",
                "737-7H4",
                "Turbo-Fan",
                (201, "WN", 340),
                (1997, 2008),
            ),
        ],
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
        fleet: &[
            Model::new(
                "MCDONNELL DOUGLAS",
                "DC-9-82(MD-82)",
                "Turbo-Fan",
                (201, "AA", 230),
                (1983, 1992),
            ),
            Model::new(
                "MCDONNELL DOUGLAS",
                "DC-9-83(MD-83)",
                "Turbo-Fan",
                (559, "AA", 60),
                (1987, 1999),
            ),
            Model::new(
                "BOEING",
                "737-823",
                "Turbo-Fan",
                (901, "AN", 80),
                (1998, 2008),
            ),
            Model::new(
                "BOEING",
                "757-223",
                "Turbo-Fan",
                (610, "AM", 120),
                (1989, 2001),
            ),
            Model::new(
                "BOEING",
                "767-323",
                "Turbo-Fan",
                (340, "AK", 60),
                (1988, 2003),
            ),
        ],
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
        fleet: &[
            Model::new(
                "EMBRAER",
                "EMB-120ER",
                "Turbo-Prop",
                (190, "SW", 60),
                (1990, 1998),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2B19",
                "Turbo-Fan",
                (402, "SK", 150),
                (1994, 2006),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL600-2C10",
                "Turbo-Fan",
                (701, "SK", 90),
                (2004, 2008),
            ),
        ],
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
        fleet: &[
            Model::new(
                "SAAB-SCANIA",
                "SAAB 340B",
                "Turbo-Prop",
                (301, "AE", 35),
                (1990, 1998),
            ),
            Model::new(
                "EMBRAER",
                "EMB-135KL",
                "Turbo-Fan",
                (700, "AE", 60),
                (1998, 2003),
            ),
            Model::new(
                "EMBRAER",
                "EMB-145LR",
                "Turbo-Fan",
                (600, "MQ", 190),
                (1998, 2005),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2C10",
                "Turbo-Fan",
                (500, "AE", 25),
                (2001, 2005),
            ),
        ],
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
        fleet: &[
            Model::new(
                "BOEING",
                "737-3B7",
                "Turbo-Fan",
                (504, "AU", 60),
                (1985, 1989),
            ),
            Model::new(
                "BOEING",
                "737-401",
                "Turbo-Fan",
                (404, "US", 50),
                (1988, 1993),
            ),
            Model::new(
                "AIRBUS INDUSTRIE",
                "A319-132",
                "Turbo-Fan",
                (700, "UW", 90),
                (1998, 2003),
            ),
            Model::new(
                "AIRBUS INDUSTRIE",
                "A320-232",
                "Turbo-Fan",
                (620, "AW", 75),
                (1990, 2007),
            ),
            Model::new(
                "AIRBUS INDUSTRIE",
                "A321-211",
                "Turbo-Fan",
                (161, "UW", 35),
                (2001, 2008),
            ),
            Model::new(
                "BOEING",
                "757-2S7",
                "Turbo-Fan",
                (901, "AW", 40),
                (1985, 1995),
            ),
        ],
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
        fleet: &[
            Model::new(
                "MCDONNELL DOUGLAS",
                "MD-88",
                "Turbo-Fan",
                (901, "DL", 115),
                (1987, 1993),
            ),
            Model::new(
                "BOEING",
                "737-832",
                "Turbo-Fan",
                (371, "DA", 75),
                (1998, 2001),
            ),
            Model::new(
                "BOEING",
                "757-232",
                "Turbo-Fan",
                (604, "DL", 130),
                (1984, 2001),
            ),
            Model::new(
                "BOEING",
                "767-332",
                "Turbo-Fan",
                (117, "DL", 85),
                (1986, 2001),
            ),
        ],
    },
    Carrier {
        code: "UA",
        name: "United Air Lines",
        flights: 449_515,
        hubs: &[("ORD", 12), ("DEN", 10), ("SFO", 8), ("LAX", 7), ("IAD", 7)],
        stations: Busy(1000),
        pairs: 276,
        miles_max: 4900,
        fleet: &[
            Model::new(
                "BOEING",
                "737-322",
                "Turbo-Fan",
                (301, "UA", 60),
                (1986, 1991),
            ),
            Model::new(
                "AIRBUS INDUSTRIE",
                "A319-131",
                "Turbo-Fan",
                (801, "UA", 55),
                (1997, 2001),
            ),
            Model::new(
                "AIRBUS INDUSTRIE",
                "A320-232",
                "Turbo-Fan",
                (402, "UA", 97),
                (1993, 2002),
            ),
            Model::new(
                "BOEING",
                "757-222",
                "Turbo-Fan",
                (502, "UA", 97),
                (1989, 1999),
            ),
            Model::new(
                "BOEING",
                "767-322",
                "Turbo-Fan",
                (641, "UA", 35),
                (1991, 2001),
            ),
            Model::new(
                "BOEING",
                "777-222",
                "Turbo-Fan",
                (766, "UA", 34),
                (1994, 2002),
            ),
        ],
    },
    Carrier {
        code: "XE",
        name: "Expressjet Airlines",
        flights: 374_510,
        hubs: &[("IAH", 12), ("EWR", 11), ("CLE", 11), ("ONT", 4)],
        stations: Busy(300),
        pairs: 360,
        miles_max: 1300,
        fleet: &[
            Model::new(
                "EMBRAER",
                "EMB-135LR",
                "Turbo-Fan",
                (501, "EX", 30),
                (1999, 2003),
            ),
            Model::new(
                "EMBRAER",
                "EMB-145LR",
                "Turbo-Fan",
                (900, "XE", 99),
                (1996, 2002),
            ),
            Model::new(
                "EMBRAER",
                "EMB-145XR",
                "Turbo-Fan",
                (100, "XJ", 104),
                (2002, 2005),
            ),
        ],
    },
    Carrier {
        code: "NW",
        name: "Northwest Airlines",
        flights: 347_652,
        hubs: &[("MSP", 12), ("DTW", 11), ("MEM", 10), ("IND", 2)],
        stations: Busy(600),
        pairs: 252,
        miles_max: 4700,
        fleet: &[
            Model::new(
                "MCDONNELL DOUGLAS",
                "DC-9-31",
                "Turbo-Fan",
                (601, "NW", 60),
                (1967, 1978),
            ),
            Model::new(
                "AIRBUS INDUSTRIE",
                "A319-114",
                "Turbo-Fan",
                (301, "NB", 57),
                (1999, 2003),
            ),
            Model::new(
                "AIRBUS INDUSTRIE",
                "A320-211",
                "Turbo-Fan",
                (301, "US", 73),
                (1989, 2003),
            ),
            Model::new(
                "BOEING",
                "757-251",
                "Turbo-Fan",
                (501, "US", 55),
                (1985, 1996),
            ),
            Model::new(
                "AIRBUS",
                "A330-323",
                "Turbo-Fan",
                (801, "NW", 32),
                (2003, 2007),
            ),
        ],
    },
    Carrier {
        code: "CO",
        name: "Continental Air Lines",
        flights: 298_455,
        hubs: &[("IAH", 12), ("EWR", 12), ("CLE", 6)],
        stations: Busy(1000),
        pairs: 192,
        miles_max: 5000,
        fleet: &[
            Model::new(
                "BOEING",
                "737-3T0",
                "Turbo-Fan",
                (303, "CO", 45),
                (1985, 1988),
            ),
            Model::new(
                "BOEING",
                "737-524",
                "Turbo-Fan",
                (601, "CO", 63),
                (1994, 1998),
            ),
            Model::new(
                "BOEING",
                "737-724",
                "Turbo-Fan",
                (701, "CO", 36),
                (1998, 2000),
            ),
            Model::new(
                "BOEING",
                "737-824",
                "Turbo-Fan",
                (201, "CO", 99),
                (1998, 2008),
            ),
            Model::new(
                "BOEING",
                "757-224",
                "Turbo-Fan",
                (101, "CO", 41),
                (1994, 2000),
            ),
            Model::new(
                "BOEING",
                "767-224",
                "Turbo-Fan",
                (150, "CT", 26),
                (2000, 2002),
            ),
        ],
    },
    Carrier {
        code: "EV",
        name: "Atlantic Southeast Airlines",
        flights: 280_575,
        hubs: &[("ATL", 14), ("CVG", 2), ("LAX", 1)],
        stations: Busy(150),
        pairs: 228,
        miles_max: 1000,
        fleet: &[
            Model::new(
                "ATR",
                "ATR 72-212",
                "Turbo-Prop",
                (630, "AS", 12),
                (1993, 1994),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2B19",
                "Turbo-Fan",
                (820, "AS", 110),
                (1997, 2005),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2C10",
                "Turbo-Fan",
                (701, "EV", 40),
                (2002, 2007),
            ),
        ],
    },
    Carrier {
        code: "9E",
        name: "Pinnacle Airlines",
        flights: 262_208,
        hubs: &[("MEM", 11), ("MSP", 9), ("DTW", 10), ("IND", 2)],
        stations: Busy(150),
        pairs: 288,
        miles_max: 1000,
        fleet: &[
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2B19",
                "Turbo-Fan",
                (820, "AY", 124),
                (2000, 2006),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2D24",
                "Turbo-Fan",
                (131, "EV", 16),
                (2007, 2008),
            ),
        ],
    },
    Carrier {
        code: "FL",
        name: "AirTran Airways",
        flights: 261_684,
        hubs: &[("ATL", 14), ("MCO", 6), ("BWI", 4), ("MKE", 5)],
        stations: Busy(1700),
        pairs: 168,
        miles_max: 2400,
        fleet: &[
            Model::new(
                "BOEING",
                "717-200",
                "Turbo-Fan",
                (910, "AT", 86),
                (1999, 2006),
            ),
            Model::new(
                "BOEING",
                "737-7BD",
                "Turbo-Fan",
                (166, "AT", 52),
                (2004, 2008),
            ),
        ],
    },
    Carrier {
        code: "YV",
        name: "Mesa Airlines",
        flights: 254_930,
        hubs: &[("PHX", 11), ("CLT", 7), ("IAD", 8), ("ORD", 4), ("DEN", 4)],
        stations: Busy(180),
        pairs: 276,
        miles_max: 1100,
        fleet: &[
            Model::new(
                "DEHAVILLAND",
                "DHC-8-202",
                "Turbo-Prop",
                (990, "HA", 9),
                (1995, 1999),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2B19",
                "Turbo-Fan",
                (710, "MJ", 50),
                (1997, 2003),
            ),
            Model::new(
                "EMBRAER",
                "EMB-145LR",
                "Turbo-Fan",
                (820, "MJ", 36),
                (2000, 2003),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2D24",
                "Turbo-Fan",
                (900, "FJ", 58),
                (2003, 2006),
            ),
        ],
    },
    Carrier {
        code: "OH",
        name: "Comair",
        flights: 197_607,
        hubs: &[("CVG", 12), ("JFK", 8), ("ATL", 3), ("MCO", 2), ("LGA", 3)],
        stations: Busy(200),
        pairs: 264,
        miles_max: 1000,
        fleet: &[
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2B19",
                "Turbo-Fan",
                (400, "CA", 120),
                (1993, 2005),
            ),
            Model::new(
                "BOMBARDIER INC",
                "CL-600-2C10",
                "Turbo-Fan",
                (641, "CA", 15),
                (2002, 2005),
            ),
        ],
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
        fleet: &[
            Model::new(
                "EMBRAER",
                "ERJ 190-100 IGW",
                "Turbo-Fan",
                (179, "JB", 36),
                (2005, 2008),
            ),
            Model::new(
                "AIRBUS",
                "A320-232",
                "Turbo-Fan",
                (503, "JB", 110),
                (1999, 2008),
            ),
        ],
    },
    Carrier {
        code: "AS",
        name: "Alaska Airlines",
        flights: 151_102,
        hubs: &[("SEA", 13), ("ANC", 30), ("PDX", 7), ("LAX", 3)],
        stations: State(3800, "AK"),
        pairs: 120,
        miles_max: 2800,
        fleet: &[
            Model::new(
                "MCDONNELL DOUGLAS",
                "DC-9-83(MD-83)",
                "Turbo-Fan",
                (930, "AS", 20),
                (1990, 1995),
            ),
            Model::new(
                "BOEING",
                "737-490",
                "Turbo-Fan",
                (760, "AS", 40),
                (1992, 2000),
            ),
            Model::new(
                "BOEING",
                "737-790",
                "Turbo-Fan",
                (607, "AS", 20),
                (1999, 2002),
            ),
            Model::new(
                "BOEING",
                "737-890",
                "Turbo-Fan",
                (506, "AS", 60),
                (2005, 2008),
            ),
        ],
    },
    Carrier {
        code: "F9",
        name: "Frontier Airlines",
        flights: 95_762,
        hubs: &[("DEN", 10)],
        stations: Busy(1600),
        pairs: 72,
        miles_max: 1900,
        fleet: &[
            Model::new(
                "AIRBUS",
                "A318-111",
                "Turbo-Fan",
                (801, "FR", 11),
                (2003, 2007),
            ),
            Model::new(
                "AIRBUS INDUSTRIE",
                "A319-111",
                "Turbo-Fan",
                (901, "FR", 49),
                (2001, 2006),
            ),
        ],
    },
    Carrier {
        code: "HA",
        name: "Hawaiian Airlines",
        flights: 61_826,
        hubs: &[("HNL", 10), ("OGG", 1)],
        stations: Named(HAWAIIAN),
        pairs: 21,
        miles_max: 2800,
        fleet: &[
            Model::new(
                "BOEING",
                "717-22A",
                "Turbo-Fan",
                (475, "HA", 15),
                (2000, 2003),
            ),
            Model::new(
                "BOEING",
                "767-332",
                "Turbo-Fan",
                (580, "HA", 18),
                (1986, 2002),
            ),
        ],
    },
    Carrier {
        code: "AQ",
        name: "Aloha Airlines",
        flights: 7_800,
        hubs: &[("HNL", 10), ("OGG", 1)],
        stations: Named(ALOHA),
        pairs: 14,
        miles_max: 2800,
        fleet: &[
            Model::new(
                "BOEING",
                "737-282",
                "Turbo-Fan",
                (810, "AL", 9),
                (1969, 1983),
            ),
            Model::new(
                "BOEING",
                "737-76N",
                "Turbo-Fan",
                (738, "AL", 8),
                (1998, 2001),
            ),
        ],
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
