//! The tokens of Stan. `src/stan/syntax` includes this file; `stan.lalrpop` names the tokens of its productions after
//! it.

use std::fmt;

use logos::Logos;

/// Declares the tokens once: the pattern for logos, the words that diagnostics use, and whether the token is a reserved
/// word.
macro_rules! tokens {
    (tokens { $($(#[$meta:meta])* $name:ident $words:literal,)* } reserved { $($reserved:ident $word:literal,)* }) => {
        /// A kind of token. The text is looked up by position.
        #[derive(Logos, Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[logos(skip r"[ \t\r\n\x0c]+")]
        pub enum Token {
            $($(#[$meta])* $name,)*
            $(
                #[doc = $word]
                #[token($word)]
                $reserved,
            )*
        }
        impl Token {
            /// All kinds.
            pub const ALL: &[Token] = &[$(Token::$name,)* $(Token::$reserved,)*];
            /// The word, when it is one that cannot be a name.
            pub fn reserved(self) -> Option<&'static str> {
                match self {
                    $(Token::$reserved => Some($word),)*
                    _ => None,
                }
            }
        }
        impl fmt::Display for Token {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Token::$name => $words,)*
                    $(Token::$reserved => concat!("`", $word, "`"),)*
                })
            }
        }
    };
}

tokens! {
    tokens {
    /// `transformed data`
    #[regex(r"transformed[ \t\x0c]+data")] TransformedData "`transformed data`",
    /// `transformed parameters`
    #[regex(r"transformed[ \t\x0c]+parameters")] TransformedParameters "`transformed parameters`",
    /// `generated quantities`
    #[regex(r"generated[ \t\x0c]+quantities")] GeneratedQuantities "`generated quantities`",
    /// A name. The lexer reports one that starts with `_`.
    #[regex("[A-Za-z_][A-Za-z0-9_]*", priority = 2)] Ident "a name",
    /// `12`, `1_000`
    #[regex("[0-9]+(_[0-9]+)*", priority = 20)] Int "an integer",
    /// `1.5`, `1.`, `1e-3`, `.5e2`
    #[regex(r"[0-9]+(_[0-9]+)*\.([0-9]+(_[0-9]+)*)?([eE][+-]?[0-9]+(_[0-9]+)*)?", priority = 20)]
    #[regex(r"\.[0-9]+(_[0-9]+)*[eE][+-]?[0-9]+(_[0-9]+)*", priority = 20)]
    #[regex(r"[0-9]+(_[0-9]+)*[eE][+-]?[0-9]+(_[0-9]+)*", priority = 20)]
    Real "a real number",
    /// `.5`: a number, or a part of a tuple.
    #[regex(r"\.[0-9]+(_[0-9]+)*", priority = 20)] Dot "a number after a point",
    /// `2i`, `1.5e3i`
    #[regex(r"[0-9]+(_[0-9]+)*(\.([0-9]+(_[0-9]+)*)?)?([eE][+-]?[0-9]+(_[0-9]+)*)?i", priority = 30)]
    #[regex(r"\.[0-9]+(_[0-9]+)*([eE][+-]?[0-9]+(_[0-9]+)*)?i", priority = 30)]
    Imaginary "an imaginary number",
    /// Digits with letters: `0x1f`, `3px`, `1e`.
    #[regex(r"[0-9][0-9_]*(\.[0-9_]*)?[A-Za-z_][A-Za-z0-9_]*", priority = 1)] BadNumber "a malformed number",
    /// `"text"`
    #[regex(r#""[^"\r\n]*""#)] Text "a text",
    /// A text whose line ends before its quote.
    #[regex(r#""[^"\r\n]*"#)] OpenText "a text without its end",
    /// `// to the end of the line`
    #[regex(r"//[^\n]*", allow_greedy = true)] LineComment "a comment",
    /// `# to the end of the line`, of old; the lexer makes [`Token::Include`] of `#include`.
    #[regex(r"#[^\n]*", allow_greedy = true)] HashComment "a comment",
    /// `#include name`
    Include "`#include`",
    /// `/* */`
    #[regex(r"/\*([^*]|\*+[^*/])*\*+/")] BlockComment "a comment",
    /// `/*` without its end.
    #[regex(r"/\*([^*]|\*+[^*/])*\**", allow_greedy = true)] OpenComment "a comment without its end",
    /// `(`
    #[token("(")] LParen "`(`",
    /// `)`
    #[token(")")] RParen "`)`",
    /// `[`
    #[token("[")] LBracket "`[`",
    /// `]`
    #[token("]")] RBracket "`]`",
    /// `{`
    #[token("{")] LBrace "`{`",
    /// `}`
    #[token("}")] RBrace "`}`",
    /// `,`
    #[token(",")] Comma "`,`",
    /// `;`
    #[token(";")] Semi "`;`",
    /// `:`
    #[token(":")] Colon "`:`",
    /// `?`
    #[token("?")] Question "`?`",
    /// `|`
    #[token("|")] Bar "`|`",
    /// `~`
    #[token("~")] Tilde "`~`",
    /// `=`
    #[token("=")] Assign "`=`",
    /// `<-`, of old: layout tells it from a comparison with a negative number.
    OldAssign "`<-`",
    /// `+=`
    #[token("+=")] PlusAssign "`+=`",
    /// `-=`
    #[token("-=")] MinusAssign "`-=`",
    /// `*=`
    #[token("*=")] StarAssign "`*=`",
    /// `/=`
    #[token("/=")] SlashAssign "`/=`",
    /// `.*=`
    #[token(".*=")] EltStarAssign "`.*=`",
    /// `./=`
    #[token("./=")] EltSlashAssign "`./=`",
    /// `+`
    #[token("+")] Plus "`+`",
    /// `-`
    #[token("-")] Minus "`-`",
    /// `*`
    #[token("*")] Star "`*`",
    /// `/`
    #[token("/")] Slash "`/`",
    /// `%`
    #[token("%")] Percent "`%`",
    /// `%/%`
    #[token("%/%")] IntSlash "`%/%`",
    /// `\`
    #[token("\\")] Backslash "`\\`",
    /// `.*`
    #[token(".*")] EltStar "`.*`",
    /// `./`
    #[token("./")] EltSlash "`./`",
    /// `^`
    #[token("^")] Caret "`^`",
    /// `.^`
    #[token(".^")] EltCaret "`.^`",
    /// `'`
    #[token("'")] Transpose "`'`",
    /// `!`
    #[token("!")] Not "`!`",
    /// `==`
    #[token("==")] Eq "`==`",
    /// `!=`
    #[token("!=")] Ne "`!=`",
    /// `<`
    #[token("<")] Lt "`<`",
    /// `<=`
    #[token("<=")] Le "`<=`",
    /// `>`
    #[token(">")] Gt "`>`",
    /// `>=`
    #[token(">=")] Ge "`>=`",
    /// `&&`
    #[token("&&")] And "`&&`",
    /// `||`
    #[token("||")] Or "`||`",
    /// `&`: in no production, for a better message.
    #[token("&")] Ampersand "`&`",
    /// `**`: in no production, for a better message.
    #[token("**")] StarStar "`**`",
    /// `++`: in no production, for a better message.
    #[token("++")] PlusPlus "`++`",
    /// `^=`: in no production, for a better message.
    #[token("^=")] CaretAssign "`^=`",
    /// `%=`: in no production, for a better message.
    #[token("%=")] PercentAssign "`%=`",

    /// The `T` of `T[a, b]`: layout tells it from a name.
    Truncate "`T`",
    /// A statement or a function that did not parse, put there by recovery.
    BadStmt "a statement",
    /// Starts the parse of functions.
    StartFunctions "functions",
    /// Starts the parse of statements.
    StartBlock "a block",

    }
    reserved {
    Functions "functions",
    Data "data",
    Parameters "parameters",
    Model "model",
    Return "return",
    If "if",
    Else "else",
    While "while",
    For "for",
    In "in",
    Break "break",
    Continue "continue",
    Profile "profile",
    Void "void",
    IntType "int",
    RealType "real",
    Complex "complex",
    Vector "vector",
    RowVector "row_vector",
    Matrix "matrix",
    ComplexVector "complex_vector",
    ComplexRowVector "complex_row_vector",
    ComplexMatrix "complex_matrix",
    Array "array",
    Tuple "tuple",
    Ordered "ordered",
    PositiveOrdered "positive_ordered",
    Simplex "simplex",
    UnitVector "unit_vector",
    SumToZeroVector "sum_to_zero_vector",
    SumToZeroMatrix "sum_to_zero_matrix",
    CholeskyFactorCorr "cholesky_factor_corr",
    CholeskyFactorCov "cholesky_factor_cov",
    CorrMatrix "corr_matrix",
    CovMatrix "cov_matrix",
    RowStochastic "row_stochastic_matrix",
    ColumnStochastic "column_stochastic_matrix",
    Lower "lower",
    Upper "upper",
    Offset "offset",
    Multiplier "multiplier",
    Print "print",
    Reject "reject",
    FatalError "fatal_error",
    Target "target",
    Jacobian "jacobian",
    }
}

impl Token {
    /// Whether it is the name of a type, `array` and `tuple` among them.
    pub fn is_type(self) -> bool {
        matches!(
            self,
            Token::IntType
                | Token::RealType
                | Token::Complex
                | Token::Vector
                | Token::RowVector
                | Token::Matrix
                | Token::ComplexVector
                | Token::ComplexRowVector
                | Token::ComplexMatrix
                | Token::Array
                | Token::Tuple
        ) || self.is_constrained_type()
    }

    /// Whether it is the name of a type whose values are constrained.
    pub fn is_constrained_type(self) -> bool {
        matches!(
            self,
            Token::Ordered
                | Token::PositiveOrdered
                | Token::Simplex
                | Token::UnitVector
                | Token::SumToZeroVector
                | Token::SumToZeroMatrix
                | Token::CholeskyFactorCorr
                | Token::CholeskyFactorCov
                | Token::CorrMatrix
                | Token::CovMatrix
                | Token::RowStochastic
                | Token::ColumnStochastic
        )
    }

    /// Whether it is the name of a block.
    pub fn is_block(self) -> bool {
        matches!(
            self,
            Token::Functions
                | Token::Data
                | Token::TransformedData
                | Token::Parameters
                | Token::TransformedParameters
                | Token::Model
                | Token::GeneratedQuantities
        )
    }
}

/// Whether a word cannot be a name.
pub fn is_reserved(word: &str) -> bool {
    Token::ALL.iter().any(|token| token.reserved() == Some(word))
}
