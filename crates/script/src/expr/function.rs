//! The functions of the expression language.

/// A function that evaluates all its arguments first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Mod,
    Permute,
    Pi,
    Pow,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    Exactly(usize),
    /// From 1 to pgbench's maximum.
    AtLeastOne,
    /// The last one may be left out: the variable `default_seed` then stands for it.
    WithSeed(usize),
}

/// Most arguments that pgbench evaluates in one call.
pub(crate) const ARGUMENTS_MAX: usize = 16;

/// Name, function, number of arguments. The first name of a function is the one printed.
const FUNCTIONS: [(&str, Function, Arity); 21] = [
    ("abs", Function::Abs, Arity::Exactly(1)),
    ("debug", Function::Debug, Arity::Exactly(1)),
    ("double", Function::Double, Arity::Exactly(1)),
    ("exp", Function::Exp, Arity::Exactly(1)),
    ("greatest", Function::Greatest, Arity::AtLeastOne),
    ("hash", Function::HashMurmur2, Arity::WithSeed(2)),
    ("hash_fnv1a", Function::HashFnv1a, Arity::WithSeed(2)),
    ("hash_murmur2", Function::HashMurmur2, Arity::WithSeed(2)),
    ("int", Function::Int, Arity::Exactly(1)),
    ("least", Function::Least, Arity::AtLeastOne),
    ("ln", Function::Ln, Arity::Exactly(1)),
    ("mod", Function::Mod, Arity::Exactly(2)),
    ("permute", Function::Permute, Arity::WithSeed(3)),
    ("pi", Function::Pi, Arity::Exactly(0)),
    ("pow", Function::Pow, Arity::Exactly(2)),
    ("power", Function::Pow, Arity::Exactly(2)),
    ("random", Function::Random, Arity::Exactly(2)),
    (
        "random_exponential",
        Function::RandomExponential,
        Arity::Exactly(3),
    ),
    (
        "random_gaussian",
        Function::RandomGaussian,
        Arity::Exactly(3),
    ),
    ("random_zipfian", Function::RandomZipfian, Arity::Exactly(3)),
    ("sqrt", Function::Sqrt, Arity::Exactly(1)),
];

impl Function {
    /// The function called `name` in any case of letters, and how many arguments it takes.
    pub(crate) fn find(name: &str) -> Option<(Self, Arity)> {
        let entry = FUNCTIONS
            .iter()
            .find(|entry| entry.0.eq_ignore_ascii_case(name))?;
        Some((entry.1, entry.2))
    }

    pub(crate) fn name(self) -> &'static str {
        FUNCTIONS
            .iter()
            .find(|entry| entry.1 == self)
            .map_or("", |entry| entry.0)
    }

    /// All names, for the error that somebody who mistyped one gets.
    pub(crate) fn names() -> String {
        FUNCTIONS.map(|entry| entry.0).join(", ")
    }

    /// Whether equal arguments always give an equal value and nothing else happens.
    pub(crate) const fn is_pure(self) -> bool {
        !matches!(
            self,
            Self::Debug
                | Self::Random
                | Self::RandomExponential
                | Self::RandomGaussian
                | Self::RandomZipfian
        )
    }
}
