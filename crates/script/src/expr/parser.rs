//! Expression grammar: binding powers are those of PostgreSQL's SQL, as pgbench has them.

use std::ops::Range;

use super::function::{ARGUMENTS_MAX, Arity};
use super::lexer::{Placed, Token, tokens};
use super::{Expr, Function, Node, Operator};
use crate::error::ScriptError;
use crate::source::Source;
use crate::symbols::Symbols;
use crate::value::Scalar;

/// Deepest nesting of an expression's text, and deepest tree that comes of it (`a + b + c` is as
/// deep as it is long). Parser and evaluator call themselves once per level, on threads whose
/// stacks are small.
const NESTING_MAX: u32 = 200;
const DEPTH_MAX: u32 = 500;

// How tightly operators bind, lowest first.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARE: u8 = 5;
const BITS: u8 = 6;
const ADD: u8 = 7;
const MULTIPLY: u8 = 8;
const UNARY: u8 = 9;

const OPERAND_HINT: &str =
    "expected a number, a :variable, a function call, CASE or an expression in parentheses";

/// A node and how deep it is.
struct Deep {
    node: Node,
    depth: u32,
}

struct Parser<'a> {
    source: &'a Source<'a>,
    symbols: &'a mut Symbols,
    tokens: Vec<Placed>,
    at: usize,
    nesting: u32,
}

/// The expression from `at` to the end of its line, and the offset behind that line.
pub(crate) fn parse_expression(
    source: &Source<'_>,
    at: usize,
    symbols: &mut Symbols,
) -> Result<(Expr, usize), ScriptError> {
    let (tokens, end) = tokens(source, at)?;
    let mut parser = Parser {
        source,
        symbols,
        tokens,
        at: 0,
        nesting: 0,
    };
    let expr = parser.expression(0)?;
    if *parser.peek() != Token::End {
        return Err(parser.unexpected("an operator or the end of the line should stand here"));
    }
    Ok((Expr(expr.node), end))
}

/// One word of `\setrandom`: a number, with a sign or without, or `:name`.
pub(crate) fn parse_operand(
    source: &Source<'_>,
    range: Range<usize>,
    symbols: &mut Symbols,
) -> Result<Node, ScriptError> {
    let (tokens, _) = tokens(source, range.start)?;
    let tokens = tokens
        .into_iter()
        .take_while(|token| token.1.start < range.end);
    let mut tokens: Vec<_> = tokens.collect();
    tokens.push((Token::End, range.end..range.end));
    let mut parser = Parser {
        source,
        symbols,
        tokens,
        at: 0,
        nesting: 0,
    };
    let operand = parser.expression(UNARY)?;
    let simple = matches!(
        operand.node,
        Node::Const(Scalar::Int(_) | Scalar::Double(_)) | Node::Var { .. }
    );
    if !simple || *parser.peek() != Token::End {
        return Err(source.error(range, "invalid argument", "give a number or a :variable"));
    }
    Ok(operand.node)
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        self.tokens
            .get(self.at)
            .map_or(&Token::End, |token| &token.0)
    }

    fn range(&self) -> Range<usize> {
        self.tokens
            .get(self.at)
            .or(self.tokens.last())
            .map_or(0..0, |token| token.1.clone())
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        self.at += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(name) if name.eq_ignore_ascii_case(word));
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self, hint: &str) -> ScriptError {
        self.source.error(self.range(), "syntax error", hint)
    }

    fn expect(&mut self, symbol: &str) -> Result<(), ScriptError> {
        if self.take_symbol(symbol) {
            return Ok(());
        }
        Err(self.unexpected(&format!("a \"{symbol}\" is missing here")))
    }

    fn expect_word(&mut self, word: &str) -> Result<(), ScriptError> {
        if self.take_word(word) {
            return Ok(());
        }
        Err(self.unexpected(&format!("the word {word} is missing here")))
    }

    /// `node` one level above its deepest part, or an error if that is too deep.
    fn above(&self, node: Node, parts: &[u32]) -> Result<Deep, ScriptError> {
        let node = fold(node);
        let is_constant = matches!(node, Node::Const(_));
        let deepest = parts.iter().max().filter(|_| !is_constant);
        let depth = deepest.map_or(0, |deepest| deepest + 1);
        if depth > DEPTH_MAX {
            Err(self.too_deep())
        } else {
            Ok(Deep { node, depth })
        }
    }

    fn too_deep(&self) -> ScriptError {
        let hint = "split it into several \\set commands";
        self.source
            .error(self.range(), "expression is nested too deeply", hint)
    }

    /// An expression of operators that bind at least as tightly as `power`.
    fn expression(&mut self, power: u8) -> Result<Deep, ScriptError> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(self.too_deep());
        }
        let mut left = self.prefix()?;
        let mut compared = false;
        loop {
            if power <= IS && self.is_test(&mut left)? {
                compared = false;
                continue;
            }
            let Some((symbol, binding)) = self.binary_operator() else {
                break;
            };
            if binding < power {
                break;
            }
            if binding == COMPARE && compared {
                return Err(
                    self.unexpected("comparisons cannot be chained: use AND or parentheses")
                );
            }
            compared = binding == COMPARE;
            self.at += 1;
            let right = self.expression(binding + 1)?;
            let depths = [left.depth, right.depth];
            left = self.above(combine(symbol, left.node, right.node), &depths)?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    /// Takes `IS …`, `ISNULL` or `NOTNULL` behind `left`.
    fn is_test(&mut self, left: &mut Deep) -> Result<bool, ScriptError> {
        let (value, negated) = if self.take_word("isnull") {
            (Scalar::Null, false)
        } else if self.take_word("notnull") {
            (Scalar::Null, true)
        } else if self.take_word("is") {
            let negated = self.take_word("not");
            let value = if self.take_word("null") {
                Scalar::Null
            } else if self.take_word("true") {
                Scalar::Bool(true)
            } else if self.take_word("false") {
                Scalar::Bool(false)
            } else {
                return Err(self.unexpected("IS takes NULL, TRUE or FALSE, with NOT or without"));
            };
            (value, negated)
        } else {
            return Ok(false);
        };
        let inner = std::mem::replace(&mut left.node, Node::Const(Scalar::Null));
        let mut test = self.above(Node::Is(Box::new(inner), value), &[left.depth])?;
        if negated {
            test = self.above(Node::Not(Box::new(test.node)), &[test.depth])?;
        }
        *left = test;
        Ok(true)
    }

    /// The binary operator at this place and how tightly it binds.
    fn binary_operator(&self) -> Option<(&'static str, u8)> {
        match self.peek() {
            Token::Name(name) if name.eq_ignore_ascii_case("or") => Some(("or", OR)),
            Token::Name(name) if name.eq_ignore_ascii_case("and") => Some(("and", AND)),
            Token::Symbol(symbol) => {
                let binding = match *symbol {
                    "<" | "<=" | "=" | "<>" | "!=" | ">" | ">=" => COMPARE,
                    "|" | "#" | "&" | "<<" | ">>" => BITS,
                    "+" | "-" => ADD,
                    "*" | "/" | "%" => MULTIPLY,
                    _ => return None,
                };
                Some((symbol, binding))
            }
            _ => None,
        }
    }

    fn prefix(&mut self) -> Result<Deep, ScriptError> {
        let start = self.at;
        let Token::Symbol(symbol) = *self.peek() else {
            return self.operand();
        };
        self.at += 1;
        match symbol {
            "(" => {
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            "+" => self.expression(UNARY),
            "-" if *self.peek() == Token::MinimumMagnitude => {
                self.at += 1;
                self.above(Node::Const(Scalar::Int(i64::MIN)), &[])
            }
            "-" => self.applied(Operator::Sub, 0, UNARY),
            "~" => self.applied(Operator::BitXor, -1, BITS + 1),
            _ => {
                self.at = start;
                Err(self.unexpected(OPERAND_HINT))
            }
        }
    }

    /// Unary operators are binary ones with a constant left side, as in pgbench.
    fn applied(&mut self, operator: Operator, left: i64, power: u8) -> Result<Deep, ScriptError> {
        let right = self.expression(power)?;
        let sides = Box::new([Node::Const(Scalar::Int(left)), right.node]);
        self.above(Node::Binary(operator, sides), &[right.depth])
    }

    fn operand(&mut self) -> Result<Deep, ScriptError> {
        let token = self.peek().clone();
        let node = match token {
            Token::Int(value) => Node::Const(Scalar::Int(value)),
            Token::Double(value) => Node::Const(Scalar::Double(value)),
            Token::Variable(name) => Node::Var {
                id: self.symbols.intern(&name),
                name: name.into(),
            },
            Token::Name(name) => return self.named(&name),
            Token::MinimumMagnitude => {
                let hint = "2^63 is an integer only with a minus before it";
                return Err(self
                    .source
                    .error(self.range(), "bigint constant overflow", hint));
            }
            Token::Symbol(_) | Token::End => return Err(self.unexpected(OPERAND_HINT)),
        };
        self.at += 1;
        self.above(node, &[])
    }

    fn named(&mut self, name: &str) -> Result<Deep, ScriptError> {
        let constant = match name.to_ascii_lowercase().as_str() {
            "null" => Scalar::Null,
            "true" => Scalar::Bool(true),
            "false" => Scalar::Bool(false),
            "not" => {
                self.at += 1;
                let inner = self.expression(NOT)?;
                return self.above(Node::Not(Box::new(inner.node)), &[inner.depth]);
            }
            "case" => return self.case(),
            "and" | "or" | "is" | "isnull" | "notnull" | "when" | "then" | "else" | "end" => {
                return Err(self.unexpected(OPERAND_HINT));
            }
            _ => return self.call(name),
        };
        self.at += 1;
        self.above(Node::Const(constant), &[])
    }

    fn case(&mut self) -> Result<Deep, ScriptError> {
        self.expect_word("case")?;
        let mut arms = Vec::new();
        let mut depths = Vec::new();
        while arms.is_empty()
            || matches!(self.peek(), Token::Name(n) if n.eq_ignore_ascii_case("when"))
        {
            self.expect_word("when")?;
            let condition = self.expression(0)?;
            self.expect_word("then")?;
            let value = self.expression(0)?;
            depths.extend([condition.depth, value.depth]);
            arms.push([condition.node, value.node]);
        }
        let mut otherwise = Node::Const(Scalar::Null);
        if self.take_word("else") {
            let value = self.expression(0)?;
            depths.push(value.depth);
            otherwise = value.node;
        }
        self.expect_word("end")?;
        self.above(
            Node::Case {
                arms,
                otherwise: Box::new(otherwise),
            },
            &depths,
        )
    }

    fn call(&mut self, name: &str) -> Result<Deep, ScriptError> {
        let range = self.range();
        let Some((function, arity)) = Function::find(name) else {
            let hint = format!(
                "a variable is written with a colon (:{name}); the functions are {}",
                Function::names()
            );
            let message = format!("unexpected function name ({name})");
            return Err(self.source.error(range, message, hint));
        };
        self.at += 1;
        self.expect("(")?;
        let mut args = Vec::new();
        let mut depths = Vec::new();
        while !self.take_symbol(")") {
            if !args.is_empty() {
                self.expect(",")?;
            }
            let arg = self.expression(0)?;
            depths.push(arg.depth);
            args.push(arg.node);
        }
        if let Err((message, hint)) = check_arity(name, arity, args.len(), self.source.late) {
            return Err(self
                .source
                .error(range, format!("{message} ({name})"), hint));
        }
        if matches!(arity, Arity::WithSeed(most) if args.len() < most) {
            let name = "default_seed";
            args.push(Node::Var {
                id: self.symbols.intern(name),
                name: name.into(),
            });
            depths.push(0);
        }
        if function != Function::Mod {
            return self.above(Node::Call(function, args), &depths);
        }
        let mut sides = args.into_iter();
        let (Some(left), Some(right)) = (sides.next(), sides.next()) else {
            return Err(self.unexpected("mod takes two arguments"));
        };
        self.above(
            Node::Binary(Operator::Mod, Box::new([left, right])),
            &depths,
        )
    }
}

fn check_arity(
    name: &str,
    arity: Arity,
    count: usize,
    late: bool,
) -> Result<(), (&'static str, String)> {
    let (ok, takes) = match arity {
        Arity::Exactly(wanted) => (count == wanted, format!("{wanted}")),
        Arity::WithSeed(most) => (
            count == most || count + 1 == most,
            format!("{} or {most}", most - 1),
        ),
        Arity::AtLeastOne if count == 0 => {
            let hint = format!("{name} takes 1 to {ARGUMENTS_MAX} arguments");
            return Err(("at least one argument expected", hint));
        }
        Arity::AtLeastOne if count > ARGUMENTS_MAX && !late => {
            let hint = format!("nest calls of {name}");
            return Err(("too many function arguments, maximum is 16", hint));
        }
        Arity::AtLeastOne => return Ok(()),
    };
    if ok {
        return Ok(());
    }
    Err((
        "unexpected number of arguments",
        format!("{name} takes {takes}, {count} given"),
    ))
}

fn combine(symbol: &str, left: Node, right: Node) -> Node {
    let (operator, swapped) = match symbol {
        "or" => return Node::Or(Box::new([left, right])),
        "and" => return Node::And(Box::new([left, right])),
        "+" => (Operator::Add, false),
        "-" => (Operator::Sub, false),
        "*" => (Operator::Mul, false),
        "/" => (Operator::Div, false),
        "%" => (Operator::Mod, false),
        "=" => (Operator::Eq, false),
        "<" => (Operator::Lt, false),
        "<=" => (Operator::Le, false),
        ">" => (Operator::Lt, true),
        ">=" => (Operator::Le, true),
        "&" => (Operator::BitAnd, false),
        "|" => (Operator::BitOr, false),
        "#" => (Operator::BitXor, false),
        "<<" => (Operator::ShiftLeft, false),
        ">>" => (Operator::ShiftRight, false),
        _ => (Operator::Ne, false),
    };
    let sides = if swapped {
        [right, left]
    } else {
        [left, right]
    };
    Node::Binary(operator, Box::new(sides))
}

/// Replaces a node of constants by its value, if it has one that can be written down again.
/// Errors stay for the run: a branch that is never taken may divide by zero.
fn fold(node: Node) -> Node {
    let constant = |node: &Node| matches!(node, Node::Const(_));
    let all_constant = match &node {
        Node::Const(_) | Node::Var { .. } => false,
        Node::Binary(_, sides) | Node::And(sides) | Node::Or(sides) => sides.iter().all(constant),
        Node::Not(inner) | Node::Is(inner, _) => constant(inner),
        Node::Case { arms, otherwise } => {
            arms.iter().flatten().all(constant) && constant(otherwise)
        }
        Node::Call(function, args) => function.is_pure() && args.iter().all(constant),
    };
    if !all_constant {
        return node;
    }
    match node.constant_value() {
        Some(Scalar::Double(value))
            if !value.is_finite() || value.is_sign_negative() && value >= 0.0 =>
        {
            node
        }
        Some(value) => Node::Const(value),
        None => node,
    }
}
