//! Expressions of `\set`, `\if` and `\elif`: the tree, and how it is written down again.

mod eval;
mod function;
mod lexer;
mod parser;

use std::fmt;

pub use eval::EvalContext;
pub(crate) use function::Function;
pub(crate) use parser::{parse_expression, parse_operand};

use crate::symbols::VarId;
use crate::value::Scalar;

/// A parsed expression. Names are resolved and constant parts computed when it is parsed.
///
/// Its `Display` is fully bracketed text that parses to an expression of the same value.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr(pub(crate) Node);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Const(Scalar),
    Var {
        id: VarId,
        name: Box<str>,
    },
    Binary(Operator, Box<[Node; 2]>),
    Not(Box<Node>),
    Is(Box<Node>, Scalar),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Case {
        arms: Vec<[Node; 2]>,
        otherwise: Box<Node>,
    },
    Call(Function, Vec<Node>),
}

/// Operators that evaluate both sides. `a > b` is stored as `b < a`: pgbench evaluates the right
/// side first there, which decides who draws which random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Eq,
    Ne,
    Lt,
    Le,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

impl Operator {
    const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Eq => "=",
            Self::Ne => "<>",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "#",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        }
    }
}

impl Expr {
    /// Calls `visit` with every variable that the expression may read.
    pub(crate) fn variables(&self, visit: &mut dyn FnMut(VarId)) {
        self.0.variables(visit);
    }
}

impl Node {
    fn variables(&self, visit: &mut dyn FnMut(VarId)) {
        match self {
            Self::Const(_) => {}
            Self::Var { id, .. } => visit(*id),
            Self::Binary(_, sides) | Self::And(sides) | Self::Or(sides) => {
                sides.iter().for_each(|side| side.variables(visit));
            }
            Self::Not(inner) | Self::Is(inner, _) => inner.variables(visit),
            Self::Case { arms, otherwise } => {
                arms.iter().flatten().for_each(|part| part.variables(visit));
                otherwise.variables(visit);
            }
            Self::Call(_, args) => args.iter().for_each(|arg| arg.variables(visit)),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const(value) => write_constant(*value, f),
            Self::Var { name, .. } => write!(f, ":{name}"),
            Self::Binary(op, sides) => write!(f, "({} {} {})", sides[0], op.symbol(), sides[1]),
            Self::Not(inner) => write!(f, "(NOT {inner})"),
            Self::Is(inner, value) => {
                write!(f, "({inner} IS ")?;
                write_constant(*value, f)?;
                f.write_str(")")
            }
            Self::And(sides) => write!(f, "({} AND {})", sides[0], sides[1]),
            Self::Or(sides) => write!(f, "({} OR {})", sides[0], sides[1]),
            Self::Case { arms, otherwise } => {
                f.write_str("CASE")?;
                for [condition, value] in arms {
                    write!(f, " WHEN {condition} THEN {value}")?;
                }
                write!(f, " ELSE {otherwise} END")
            }
            Self::Call(function, args) => {
                write!(f, "{}(", function.name())?;
                for (index, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Constants as they are written in a script; the parser keeps no others (see `fold`).
fn write_constant(value: Scalar, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match value {
        Scalar::Null => f.write_str("NULL"),
        Scalar::Bool(value) => f.write_str(if value { "TRUE" } else { "FALSE" }),
        Scalar::Int(value) if value < 0 => write!(f, "({value})"),
        Scalar::Int(value) => write!(f, "{value}"),
        Scalar::Double(value) if value < 0.0 => write!(f, "({value:?})"),
        Scalar::Double(value) => write!(f, "{value:?}"),
    }
}
