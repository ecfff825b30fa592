//! The evaluator.

use loadstone_gen::random::{
    GAUSSIAN_PARAMETER_MIN, Prng, ZIPFIAN_PARAMETER_MAX, ZIPFIAN_PARAMETER_MIN, hash_fnv1a,
    hash_murmur2, permute,
};

use super::{Expr, Function, Node, Operator};
use crate::error::EvalError;
use crate::value::{Scalar, Value, Vars};

type Evaluated = Result<Scalar, EvalError>;

/// What evaluation may read and change: one client's variables and random stream, and the sink of
/// `debug()`.
///
/// The seed that `hash(x)` and `permute(i, n)` use when none is written is the variable
/// `default_seed`, as in pgbench: store it in `vars` before the run.
pub struct EvalContext<'a> {
    /// The client's variables.
    pub vars: &'a mut Vars,
    /// The client's random stream.
    pub prng: &'a mut Prng,
    /// Index of the running script among the scripts of the run, from 0, for `debug()`.
    pub script: usize,
    /// Number of the running command, from 1, for `debug()`; [`crate::Machine`] keeps it.
    pub command: usize,
    /// Takes each line of `debug()`, without the newline, exactly as pgbench writes it to stderr:
    /// `debug(script=0,command=2): int 17`.
    pub debug: &'a mut dyn FnMut(&str),
}

impl<'a> EvalContext<'a> {
    /// A context for script 0.
    pub fn new(vars: &'a mut Vars, prng: &'a mut Prng, debug: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            vars,
            prng,
            script: 0,
            command: 1,
            debug,
        }
    }
}

impl Expr {
    /// The value of the expression. Draws random numbers and reads variables as pgbench does.
    pub fn eval(&self, cx: &mut EvalContext<'_>) -> Result<Value, EvalError> {
        self.scalar(cx).map(Value::from)
    }

    /// Like [`Expr::eval`], but the result is a plain copy.
    #[inline]
    pub fn scalar(&self, cx: &mut EvalContext<'_>) -> Evaluated {
        self.0.eval(cx)
    }
}

impl Node {
    /// The value of a node that holds neither variables nor random functions nor `debug()`.
    pub(super) fn constant_value(&self) -> Option<Scalar> {
        let (mut vars, mut prng) = (Vars::default(), Prng::from_seed(0));
        let mut debug = |_: &str| {};
        let mut cx = EvalContext::new(&mut vars, &mut prng, &mut debug);
        self.eval(&mut cx).ok()
    }

    fn eval(&self, cx: &mut EvalContext<'_>) -> Evaluated {
        match self {
            Self::Const(value) => Ok(*value),
            Self::Var { id, name } => cx.vars.get(*id).scalar(name),
            Self::Binary(operator, sides) => {
                let (left, right) = (sides[0].eval(cx)?, sides[1].eval(cx)?);
                binary(*operator, left, right)
            }
            Self::Call(function, args) => call(*function, args, cx),
            Self::Not(inner) => match inner.eval(cx)? {
                Scalar::Null => Ok(Scalar::Null),
                value => Ok(Scalar::Bool(!to_bool(value)?)),
            },
            Self::Is(inner, wanted) => Ok(Scalar::Bool(inner.eval(cx)? == *wanted)),
            Self::And(sides) => lazy(sides, false, cx),
            Self::Or(sides) => lazy(sides, true, cx),
            Self::Case { arms, otherwise } => {
                for [condition, value] in arms {
                    if condition.eval(cx)?.truth() {
                        return value.eval(cx);
                    }
                }
                otherwise.eval(cx)
            }
        }
    }
}

/// AND (`decided` false) and OR (`decided` true): the right side is evaluated only if the left one
/// does not decide. A null on the left decides too, unlike in SQL.
fn lazy(sides: &[Node; 2], decided: bool, cx: &mut EvalContext<'_>) -> Evaluated {
    for side in sides {
        match side.eval(cx)? {
            Scalar::Null => return Ok(Scalar::Null),
            value if to_bool(value)? == decided => return Ok(Scalar::Bool(decided)),
            _ => {}
        }
    }
    Ok(Scalar::Bool(!decided))
}

fn binary(operator: Operator, left: Scalar, right: Scalar) -> Evaluated {
    match (left, right) {
        (Scalar::Null, _) | (_, Scalar::Null) => Ok(Scalar::Null),
        (Scalar::Int(left), Scalar::Int(right)) => integers(operator, left, right),
        (Scalar::Double(_), _) | (_, Scalar::Double(_)) if is_overloaded(operator) => {
            Ok(doubles(operator, to_double(left)?, to_double(right)?))
        }
        _ => integers(operator, to_int(left)?, to_int(right)?),
    }
}

/// Whether `operator` works on doubles too.
const fn is_overloaded(operator: Operator) -> bool {
    use Operator::{Add, Div, Eq, Le, Lt, Mul, Ne, Sub};
    matches!(operator, Add | Sub | Mul | Div | Eq | Ne | Lt | Le)
}

fn integers(operator: Operator, left: i64, right: i64) -> Evaluated {
    let (value, name) = match operator {
        Operator::Add => (left.checked_add(right), "add"),
        Operator::Sub => (left.checked_sub(right), "sub"),
        Operator::Mul => (left.checked_mul(right), "mul"),
        Operator::Div | Operator::Mod if right == 0 => return Err(EvalError::DivisionByZero),
        Operator::Div => (left.checked_div(right), "div"),
        Operator::Mod => (Some(left.wrapping_rem(right)), "mod"),
        Operator::Eq => return Ok(Scalar::Bool(left == right)),
        Operator::Ne => return Ok(Scalar::Bool(left != right)),
        Operator::Lt => return Ok(Scalar::Bool(left < right)),
        Operator::Le => return Ok(Scalar::Bool(left <= right)),
        Operator::BitAnd => (Some(left & right), ""),
        Operator::BitOr => (Some(left | right), ""),
        Operator::BitXor => (Some(left ^ right), ""),
        Operator::ShiftLeft => (Some(left.wrapping_shl(shift(right))), ""),
        Operator::ShiftRight => (Some(left.wrapping_shr(shift(right))), ""),
    };
    value.map(Scalar::Int).ok_or(EvalError::Overflow(name))
}

/// How far the processor shifts: by the lowest six bits of the count.
#[expect(
    clippy::cast_sign_loss,
    reason = "six bits are kept, the sign is not among them"
)]
const fn shift(count: i64) -> u32 {
    (count & 63) as u32
}

#[expect(clippy::float_cmp, reason = "the script asked for equality")]
fn doubles(operator: Operator, left: f64, right: f64) -> Scalar {
    match operator {
        Operator::Add => Scalar::Double(left + right),
        Operator::Sub => Scalar::Double(left - right),
        Operator::Mul => Scalar::Double(left * right),
        Operator::Div => Scalar::Double(left / right),
        Operator::Eq => Scalar::Bool(left == right),
        Operator::Ne => Scalar::Bool(left != right),
        Operator::Lt => Scalar::Bool(left < right),
        _ => Scalar::Bool(left <= right),
    }
}

fn call(function: Function, args: &[Node], cx: &mut EvalContext<'_>) -> Evaluated {
    match args {
        [] => Ok(Scalar::Double(std::f64::consts::PI)),
        _ if matches!(function, Function::Greatest | Function::Least) => {
            extremum(function, args, cx)
        }
        [only] => {
            let value = only.eval(cx)?;
            one(function, value, cx)
        }
        [first, second] => {
            let (first, second) = (first.eval(cx)?, second.eval(cx)?);
            if first == Scalar::Null || second == Scalar::Null {
                return Ok(Scalar::Null);
            }
            two(function, first, second, cx)
        }
        [first, second, third, ..] => {
            let values = [first.eval(cx)?, second.eval(cx)?, third.eval(cx)?];
            if values.contains(&Scalar::Null) {
                return Ok(Scalar::Null);
            }
            three(function, values, cx)
        }
    }
}

fn one(function: Function, value: Scalar, cx: &mut EvalContext<'_>) -> Evaluated {
    if function == Function::Debug {
        debug(value, cx);
        return Ok(value);
    }
    if value == Scalar::Null {
        return Ok(Scalar::Null);
    }
    match (function, value) {
        (Function::Abs, Scalar::Int(value)) => Ok(Scalar::Int(value.wrapping_abs())),
        // As pgbench, which reads the byte of a truth value as the lowest of a double's.
        (Function::Abs, Scalar::Bool(value)) => Ok(Scalar::Double(f64::from_bits(value.into()))),
        (Function::Abs, _) => to_double(value).map(|v| Scalar::Double(v.abs())),
        (Function::Int, _) => to_int(value).map(Scalar::Int),
        (Function::Exp, _) => to_double(value).map(|v| Scalar::Double(v.exp())),
        (Function::Ln, _) => to_double(value).map(|v| Scalar::Double(v.ln())),
        (Function::Sqrt, _) => to_double(value).map(|v| Scalar::Double(v.sqrt())),
        _ => to_double(value).map(Scalar::Double),
    }
}

fn two(function: Function, first: Scalar, second: Scalar, cx: &mut EvalContext<'_>) -> Evaluated {
    match function {
        Function::Random => {
            let (min, max) = random_range(first, second)?;
            Ok(Scalar::Int(cx.prng.uniform(min, max)))
        }
        Function::HashFnv1a => Ok(Scalar::Int(hash_fnv1a(to_int(first)?, to_int(second)?))),
        Function::HashMurmur2 => Ok(Scalar::Int(hash_murmur2(to_int(first)?, to_int(second)?))),
        _ => Ok(Scalar::Double(to_double(first)?.powf(to_double(second)?))),
    }
}

fn three(function: Function, values: [Scalar; 3], cx: &mut EvalContext<'_>) -> Evaluated {
    if function == Function::Permute {
        let (value, size, seed) = (to_int(values[0])?, to_int(values[1])?, to_int(values[2])?);
        if size <= 0 {
            return Err(EvalError::PermuteSize);
        }
        return Ok(Scalar::Int(permute(value, size, seed)));
    }
    let (min, max) = random_range(values[0], values[1])?;
    let parameter = to_double(values[2])?;
    let value = match function {
        Function::RandomGaussian if parameter < GAUSSIAN_PARAMETER_MIN || parameter.is_nan() => {
            return Err(EvalError::GaussianParameter(parameter));
        }
        Function::RandomGaussian => cx.prng.gaussian(min, max, parameter),
        Function::RandomZipfian => {
            if !(ZIPFIAN_PARAMETER_MIN..=ZIPFIAN_PARAMETER_MAX).contains(&parameter) {
                return Err(EvalError::ZipfianParameter(parameter));
            }
            cx.prng.zipfian(min, max, parameter)
        }
        _ if parameter <= 0.0 || parameter.is_nan() => {
            return Err(EvalError::ExponentialParameter(parameter));
        }
        _ => cx.prng.exponential(min, max, parameter),
    };
    Ok(Scalar::Int(value))
}

fn random_range(min: Scalar, max: Scalar) -> Result<(i64, i64), EvalError> {
    let (min, max) = (to_int(min)?, to_int(max)?);
    if min > max {
        return Err(EvalError::EmptyRange);
    }
    if max.checked_sub(min).is_none_or(|width| width == i64::MAX) {
        return Err(EvalError::RangeTooLarge);
    }
    Ok((min, max))
}

/// The values are collected first: one double makes all of them doubles, one null the result.
fn extremum(function: Function, args: &[Node], cx: &mut EvalContext<'_>) -> Evaluated {
    let mut values = [Scalar::Null; super::function::ARGUMENTS_MAX];
    let Some(values) = values.get_mut(..args.len()) else {
        return Err(EvalError::TooManyArguments);
    };
    for (slot, arg) in values.iter_mut().zip(args) {
        *slot = arg.eval(cx)?;
    }
    if values.contains(&Scalar::Null) {
        return Ok(Scalar::Null);
    }
    let least = function == Function::Least;
    if values
        .iter()
        .any(|value| matches!(value, Scalar::Double(_)))
    {
        let mut best = to_double(values[0])?;
        for value in &values[1..] {
            let value = to_double(*value)?;
            // C's `a < b ? a : b`, which takes the later of two when they cannot be compared.
            best = if (least && best < value) || (!least && best > value) {
                best
            } else {
                value
            };
        }
        return Ok(Scalar::Double(best));
    }
    let mut best = to_int(values[0])?;
    for value in &values[1..] {
        let value = to_int(*value)?;
        best = if least {
            best.min(value)
        } else {
            best.max(value)
        };
    }
    Ok(Scalar::Int(best))
}

fn debug(value: Scalar, cx: &mut EvalContext<'_>) {
    let mut text = Vec::new();
    if value == Scalar::Null {
        text.extend_from_slice(b"null");
    } else {
        text.extend_from_slice(value.type_name().as_bytes());
        text.push(b' ');
        value.write_text(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let line = format!("debug(script={},command={}): {text}", cx.script, cx.command);
    (cx.debug)(&line);
}

const fn to_bool(value: Scalar) -> Result<bool, EvalError> {
    match value {
        Scalar::Bool(value) => Ok(value),
        _ => Err(EvalError::Coerce {
            from: value.type_name(),
            to: "boolean",
        }),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rounds as the conversion in C does"
)]
const fn to_double(value: Scalar) -> Result<f64, EvalError> {
    match value {
        Scalar::Double(value) => Ok(value),
        Scalar::Int(value) => Ok(value as f64),
        _ => Err(EvalError::Coerce {
            from: value.type_name(),
            to: "double",
        }),
    }
}

/// Doubles are rounded to the nearest integer, halves to the even one (C's `rint`).
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn to_int(value: Scalar) -> Result<i64, EvalError> {
    const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Scalar::Int(value) => Ok(value),
        Scalar::Double(value) => {
            let rounded = value.round_ties_even();
            if (-TWO_POW_63..TWO_POW_63).contains(&rounded) {
                return Ok(rounded as i64);
            }
            Err(EvalError::DoubleToInt(rounded))
        }
        _ => Err(EvalError::Coerce {
            from: value.type_name(),
            to: "int",
        }),
    }
}
