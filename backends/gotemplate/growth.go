package gotemplate

import (
	"fmt"
	"math"
	"regexp/syntax"
	"strconv"
	"strings"
)

// call is a call of a function: what it is given, and the weight of that.
type call struct {
	args   []any
	weight int
}

// int returns an argument as a number, the largest that counts for one that is
// larger; 0 where there is none.
func (c call) int(i int) int {
	if i >= len(c.args) {
		return 0
	}
	n, err := numberOf(c.args[i])
	if err != nil {
		return 0
	}
	return min(max(n, -maxNumber), maxNumber)
}

func (c call) text(i int) string {
	if i >= len(c.args) {
		return ""
	}
	return fmt.Sprint(c.args[i])
}

// growth are the functions whose result, or work, is not in proportion to what
// they are given, with an estimate of it. The work of all others is.
var growth = map[string]func(call) int{
	"repeat":    func(c call) int { return product(c.int(0), len(c.text(1))) },
	"indent":    func(c call) int { return indented(c) },
	"nindent":   func(c call) int { return indented(c) },
	"until":     func(c call) int { return product(abs(c.int(0)), nodeWork) },
	"untilStep": func(c call) int { return counted(c.int(0), c.int(1), c.int(2)) },
	"seq": func(c call) int {
		switch len(c.args) {
		case 1:
			return counted(1, c.int(0), 1)
		case 2:
			return counted(c.int(0), c.int(1), 1)
		case 3:
			return counted(c.int(0), c.int(2), c.int(1))
		}
		return 0
	},
	"replace": func(c call) int {
		old, with, text := c.text(0), c.text(1), c.text(2)
		return len(text) + product(strings.Count(text, old), len(with))
	},
	"wrapWith": func(c call) int {
		text := len(c.text(2))
		return text + product(text/max(c.int(0), 1)+1, len(c.text(1)))
	},
	"printf": formatted,

	"uniq": square, "mustUniq": square, "without": square, "mustWithout": square,

	"regexMatch": matched, "mustRegexMatch": matched, "regexFind": matched, "mustRegexFind": matched,
	"regexFindAll": searched, "mustRegexFindAll": searched, "regexSplit": searched, "mustRegexSplit": searched,
	"regexReplaceAll": replaced, "mustRegexReplaceAll": replaced,
	"regexReplaceAllLiteral": replaced, "mustRegexReplaceAllLiteral": replaced,
}

// product is that of two numbers that are not negative, or the largest number.
func product(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}

func abs(n int) int { return max(n, -n) }

// indented is for indent and nindent.
func indented(c call) int {
	text := c.text(1)
	return len(text) + product(strings.Count(text, "\n")+1, c.int(0))
}

// counted is for a list of the numbers from one to another.
func counted(from, to, step int) int {
	if max(abs(from), abs(to), abs(step)) >= maxNumber {
		return math.MaxInt // adding up to it may begin again below
	}
	return product(abs(to-from)/max(abs(step), 1)+2, 2*nodeWork)
}

// square is for what compares everything with everything.
func square(c call) int {
	values := c.weight / nodeWork
	return product(values, values) / 64
}

// formatted is for printf: each verb may write all arguments, as wide as its
// width or an argument says.
func formatted(c call) int {
	format := c.text(0)
	verbs, widest := strings.Count(format, "%"), 0
	for _, digits := range strings.FieldsFunc(format, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			n = maxNumber
		}
		widest = max(widest, n)
	}
	if strings.Contains(format, "*") {
		for i := range c.args {
			widest = max(widest, abs(c.int(i)))
		}
	}
	return len(format) + product(verbs, widest+c.weight)
}

// matched is for one search with a regular expression: the steps of its program
// for each character, sixteen of which are like a byte that is copied.
func matched(c call) int { return product(steps(c.text(0)), len(c.text(1))+1) / 16 }

// searched is for all matches in a text. The search for each may look at the
// whole rest, so that the work grows with the square of the text.
func searched(c call) int { return product(matched(c), len(c.text(1))/64+1) }

// replaced is for a replacement of all matches, of which there may be one at
// every character; $ in it stands for all or part of a match.
func replaced(c call) int {
	with, text := c.text(2), c.text(1)
	return searched(c) + product(len(text)+1, len(with)) + product(strings.Count(with, "$"), len(text))
}

// steps returns how many instructions a regular expression is compiled to; 0 for
// one that is none.
func steps(expression string) int {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}
