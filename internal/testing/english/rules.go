package main

import (
	"cmp"
	"regexp"
	"strings"
)

// rule is a row of the table. testdata/rules.txt has sentences that each row lists, and others that
// it does not list.
type rule struct {
	name           string
	pattern        *regexp.Regexp // of a sentence, in which quotes are hidden
	unless         *regexp.Regexp // of the words that the pattern matches: good English
	wrong, instead string
}

// row compiles a rule, in whose patterns a space is any space or the end of a line.
func row(name, pattern, unless, wrong, instead string) rule {
	compile := func(p string) *regexp.Regexp {
		return regexp.MustCompile("(?s)" + strings.ReplaceAll(p, " ", `\s+`))
	}
	return rule{name, compile(pattern), compile(cmp.Or(unless, `^$`)), wrong, instead}
}

const (
	be        = `\b(?:is|are|was|were|be|been|being)`
	behind    = `\b(?:of|for|with|by|from|in|at|to|into|against|without|than|beside|after|before|between|over|under|as|like|beyond|through)`
	transform = `\b(?:returns?|has|have|had|adds?|removes?|reads?|writes?|keeps?|makes?|takes?|gives?|collects?|counts?|changes?|` +
		`replaces?|refuses?|bounds?|appends?|appl(?:y|ies)|brings?|sets?|drops?|stores?|compiles?|evaluates?|merges?|sorts?|` +
		`deletes?|fetch(?:es)?|caches|copies|hides|answers?|identif(?:y|ies)|joins|cuts|escapes|encodes|decodes|loads|draws)`
)

// rules are precise rather than broad: it is worse to list good English than to overlook bad English.
var rules = []rule{
	// Sentences.
	row("long", `^(?:\S*\w\S*\s+(?:[^\w\s]+\s+)*){30}.*$`, "", "a sentence of over 30 words", "several sentences, one idea each"),
	row("chain", `^.*[:;] .*[:;] .*$`, "", "several colons or semicolons in a sentence", "several sentences"),

	// Relative clauses in place of nouns.
	row("what first", `^[Ww]hat .*$|[:;] what `+be+` .*$`, `\?`, "a relative clause first", "a noun, and who does what"),
	row("who first", `^(?:Who|Whoever|Whom) .*$`, `\?`, "a relative clause first", "a noun, or a condition with if"),
	row("where first", `^Where .*, .*$`, `\?|^Where (?:returns|is|has)\b`, "where for a condition", "if or when"),
	row("is what", `(?:\w+ )?`+be+` (?:what|who)\b`, `^(?i:which|that|this|these|it) `, "a relative clause for a noun", "a noun"),
	row("of what", behind+` what \w+`, `what (?:to|else|extent|order|way|sense|kind|reason)$`, "a relative clause for a noun", "a noun"),
	row("returns what", transform+` what \w+`, `what (?:to|else|order|kind)$`, "a relative clause for a noun", "a noun"),
	row("only what", `\b(?:only|but|that|all|nor|either) what `+be+`\b`, "", "a relative clause for a noun", "a noun"),
	row("for who", behind+` (?:who|whom|whoever)\b`, "", "a relative clause for a noun", "a noun"),
	row("is those", `(?:`+be+`|`+transform+`) (?:(?:those|that) of|those (?:that|which|whose|who))\b|`+be+` (?:that which|those (?:with|for|in|on))\b`, "", "a pronoun for a noun", "the noun"),
	row("of those of", behind+` (?:those|that) of\b`, `(?:than|as|like|to|with) (?:those|that) of`, "a pronoun for a noun", "the noun"),
	row("of which", `(?:\w+)?,? of which\b`, `^(?i:all|most|each|some|one|two|three|any|none|both|many|few|half|either|neither|part|only|rest|much|several|first|last|latter),? `, "a relative clause with of which", "two sentences, or whose"),
	row("that there is", `\bthat there (?:is|are|was|were)(?:[.,;)]|$)`, "", "there is for a verb", "exists, or an adjective"),

	// Conditions and negations.
	row("nil where", `(?:\bnil|\bfalse|\btrue|\bzero|\bempty|\b0|_) where\b`, "", "where for a condition", "if"),
	row("for none", `(?:\w+ )?\b(?:for|of|with|by|from|to|in|is|are|but|as) none\b(?: of)?`, ` of$|^there`, "none for a condition or a noun", "if there is no ..., or without"),
	row("there is none", `\bthere (?:is|are|was|were) none\b`, "", "none for a verb", "does not exist, or if there is no ..."),
	row("is not there", be+` (?:not|no longer|no more) there\b`, "", "there for a verb", "does not exist, or is missing"),
	row("has not", `\b(?:has|have|had) not(?:[.,;:)]|$)`, "", "has not for a verb", "does not have, or lacks"),
	row("is no", `(?:\w+ )?`+be+` no \w+`, `(?i:^there|^it) |no (?:more|less|worse|different|\w+er|way|one|need|matter|reason|such|doubt|exception)$`, "a negated noun", "is not a ..."),
	row("for nothing", `\b(?:for|of|with|by|from) nothing\b(?: but| else)?`, ` (?:but|else)$`, "nothing for a negation", "a verb with not, or if there is no ..."),
	row("for nobody", `\b(?:for|of|with|by|from|to) nobody\b`, "", "nobody for a negation", "a verb with not"),

	// Words.
	row("alone", `(?:\b(?:leav|left|let)\w* (?:\S+ ){0,8})?\b\w+,? alone\b`, `^(?:leav|left|let)|^(?:is|are|was|be|runs?|works?|stands?) `, "alone", "only"),
	row("but for", `\bbut for\b`, "", "but for", "except"),
	row("nothing but", `\bnothing but\b`, "", "nothing but", "only"),
	row("no more than", `\bno more than \w+`, `than (?:\d|_|an?$|one|two|three|four|five|ten|twice|half)`, "no more than", "only"),
	row("else than", `\b(?:otherwise|else) than\b`, "", "otherwise or else than", "different from, or other than"),
	row("another than", `\banother (?:\w+ )?than\b`, "", "another than", "a different ... from"),
	row("all that", `\ball that\b`, "", "all that", "all and the noun, or everything"),
	row("iff", `\biff\b`, "", "iff", "if, or only if"),
	row("says whether", `^\w+,? (?:says?|said|tells?|told) (?:whether|if)\b`, "", "say for a function or a value", "reports whether"),
	row("says what", `^\S+,? (?:says?|said|tells?|told) (?:what|which|how|where|who)\b`, "", "say for a function or a value", "describes, shows or returns"),
	row("is said", be+` (?:said|told)\b`, "", "a passive of say or tell", "who reports or shows what"),
	row("asked for", be+` asked for\b`, "", "asked for", "requested"),
	row("comes to", `\b(?:comes?|came|coming) to\b`, "", "come to", "reach, or become"),
	row("became of", `\b(?:became|becomes?) of\b`, "", "became of", "the result of"),
	row("in the way", `\b(?:is|are|was|were|be|stands?|stood) in the way\b`, "", "in the way", "blocks"),
	row("hold against", `\b[Hh]old(?:s|ing)? (?:[^\s,;]+ ){1,8}against\b`, "", "hold against", "compare with, or check against"),
	row("stand", `\bstands? (?:in|at|behind|before|beside|after|there|here|under|above)\b`, "", "stand for be", "is"),
	row("look after", `\b[Ll]ook(?:s|ed|ing)? after\b`, "", "look after", "manage"),
	row("in force", be+` in force\b`, "", "in force", "applies"),
	row("news", `\b(?:last|latest|its|no|the|of) news\b`, "", "news", "report"),
	row("anew", `\banew\b`, "", "anew", "again, or starts over"),
	row("one's", `\b(?:for|of|with|to|in|on|by|at|from) one's\b`, "", "one's", "your, or the noun"),
	row("let", `^(?:[Ll]et|[Ss]ay|[Tt]ell) (?:what|why|whether|which|how|the|an?|it|its|people|somebody|others|who|all|each|every|only|no)\b`, "", "let, say or tell as a summary", "the verb: allow, block, print, show"),
}
