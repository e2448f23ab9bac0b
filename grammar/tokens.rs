//! The tokens of the language. `src/syntax` includes this file; `autobatch.lalrpop` names the tokens of its productions after it.

use std::fmt;

use logos::Logos;

/// Declares the tokens once: the pattern for logos and the words that diagnostics use.
macro_rules! tokens {
    ($($(#[$meta:meta])* $name:ident $words:literal,)*) => {
        /// A kind of token. The text is looked up by position.
        #[derive(Logos, Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[logos(skip r"[ \t\r\n\x0c]+")]
        pub enum Token {
            $($(#[$meta])* $name,)*
        }
        impl Token {
            /// All kinds.
            pub const ALL: &[Token] = &[$(Token::$name,)*];
        }
        impl fmt::Display for Token {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Token::$name => $words,)* })
            }
        }
    };
}

tokens! {
    /// `fn`
    #[token("fn")] Fn "`fn`",
    /// `struct`
    #[token("struct")] Struct "`struct`",
    /// `const`
    #[token("const")] Const "`const`",
    /// `use`
    #[token("use")] Use "`use`",
    /// `as`
    #[token("as")] As "`as`",
    /// `pub`
    #[token("pub")] Pub "`pub`",
    /// `let`
    #[token("let")] Let "`let`",
    /// `mut`
    #[token("mut")] Mut "`mut`",
    /// `shared`
    #[token("shared")] Shared "`shared`",
    /// `if`
    #[token("if")] If "`if`",
    /// `else`
    #[token("else")] Else "`else`",
    /// `while`
    #[token("while")] While "`while`",
    /// `for`
    #[token("for")] For "`for`",
    /// `in`
    #[token("in")] In "`in`",
    /// `break`
    #[token("break")] Break "`break`",
    /// `continue`
    #[token("continue")] Continue "`continue`",
    /// `return`
    #[token("return")] Return "`return`",
    /// `emit`
    #[token("emit")] Emit "`emit`",
    /// `print`
    #[token("print")] Print "`print`",
    /// `assert`
    #[token("assert")] Assert "`assert`",
    /// `true`
    #[token("true")] True "`true`",
    /// `false`
    #[token("false")] False "`false`",
    /// `_`
    #[token("_", priority = 10)] Underscore "`_`",
    /// A name.
    #[regex("[A-Za-z_][A-Za-z0-9_]*", priority = 2)] Ident "a name",
    /// `12`, `1_000`
    #[regex("[0-9][0-9_]*", priority = 20)] Int "an integer",
    /// `1.5`, `1e-3`; the lexer adds `1.`
    #[regex(r"[0-9][0-9_]*\.[0-9][0-9_]*([eE][+-]?[0-9][0-9_]*)?", priority = 20)]
    #[regex(r"[0-9][0-9_]*[eE][+-]?[0-9][0-9_]*", priority = 20)]
    Real "a real number",
    /// Digits with letters: `0x1f`, `3px`.
    #[regex(r"[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][0-9]+)?[A-Za-z_][A-Za-z0-9_]*", priority = 1)] BadNumber "a malformed number",
    /// `"text"`
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)] Text "a text",
    /// A text whose line ends before its quote.
    #[regex(r#""([^"\\\n]|\\[^\n])*\\?"#)] OpenText "a text without its end",
    /// `// to the end of the line`; the lexer makes [`Token::Doc`] of those with three slashes.
    #[regex(r"//[^\n]*", allow_greedy = true)] LineComment "a comment",
    /// `/// documentation`
    Doc "a doc comment",
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
    /// `::`
    #[token("::")] PathSep "`::`",
    /// `.`
    #[token(".")] Dot "`.`",
    /// `..`
    #[token("..")] DotDot "`..`",
    /// `->`
    #[token("->")] Arrow "`->`",
    /// `=`
    #[token("=")] Assign "`=`",
    /// `+=`
    #[token("+=")] PlusAssign "`+=`",
    /// `-=`
    #[token("-=")] MinusAssign "`-=`",
    /// `*=`
    #[token("*=")] StarAssign "`*=`",
    /// `/=`
    #[token("/=")] SlashAssign "`/=`",
    /// `%=`
    #[token("%=")] PercentAssign "`%=`",
    /// `^=`
    #[token("^=")] CaretAssign "`^=`",
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
    /// `^`
    #[token("^")] Caret "`^`",
    /// `@`
    #[token("@")] At "`@`",
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
    /// `!`
    #[token("!")] Not "`!`",
    /// `|`
    #[token("|")] Bar "`|`",
    /// `&`: in no production, for a better message.
    #[token("&")] Ampersand "`&`",
    /// `++`: in no production, for a better message.
    #[token("++")] PlusPlus "`++`",
    /// `**`: in no production, for a better message.
    #[token("**")] StarStar "`**`",
    /// `=>`: in no production, for a better message.
    #[token("=>")] FatArrow "`=>`",

    /// The word `derivative` where it starts an item: layout tells it from a name.
    Derivative "`derivative`",
    /// The word `model` where it starts an item: layout tells it from a name.
    Model "`model`",
    /// The word `generated` behind the body of a model: layout tells it from a name.
    Generated "`generated`",
    /// The `<` that opens constraints: layout tells it from a comparison.
    LAngle "`<`",
    /// The `>` that closes constraints.
    RAngle "`>`",
    /// The brace of a struct literal or pattern: layout tells it from that of a block.
    FieldsBrace "`{`",
    /// The end of a statement that needs no semicolon: layout puts it there.
    StmtEnd "the end of the statement",
    /// A statement that did not parse, put there by recovery.
    BadStmt "a statement",
    /// A last expression that did not parse, put there by recovery.
    BadExpr "an expression",
    /// Starts the parse of an item.
    StartItem "an item",
    /// Starts the parse of an expression.
    StartExpr "an expression",
}

/// The words that cannot be names, in the order of their tokens.
pub fn keywords() -> impl Iterator<Item = String> {
    Token::ALL.iter().filter_map(|token| {
        let word = token.to_string().trim_matches('`').to_owned();
        let letters = word.chars().all(|c| c.is_ascii_alphabetic());
        // Words that mean something in one place only are names to the lexer.
        (letters && Token::lexer(&word).next() == Some(Ok(*token))).then_some(word)
    })
}

/// Whether a word cannot be a name.
pub fn is_keyword(word: &str) -> bool {
    !matches!(Token::lexer(word).next(), Some(Ok(Token::Ident))) && keywords().any(|known| known == word)
}
