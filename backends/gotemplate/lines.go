package gotemplate

import (
	"slices"
	"strings"
)

// lines finds the lines of a text.
type lines struct{ ends []int }

func newLines(text string) *lines {
	l := &lines{}
	for at := 0; ; {
		n := strings.IndexByte(text[at:], '\n')
		if n < 0 {
			return l
		}
		at += n + 1
		l.ends = append(l.ends, at)
	}
}

// at returns the number of the line, from 1, that a byte is in.
func (l *lines) at(offset int) int {
	n, found := slices.BinarySearch(l.ends, offset)
	if found {
		n++
	}
	return n + 1
}

// start returns where a line begins.
func (l *lines) start(line int) int {
	if line < 2 || len(l.ends) == 0 {
		return 0
	}
	return l.ends[min(line-2, len(l.ends)-1)]
}
