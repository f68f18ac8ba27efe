//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// The markers of the part of a page that this program writes.
const (
	pageBegin = "<!-- bench: begin -->\n"
	pageEnd   = "<!-- bench: end -->\n"
)

// writePage writes the tables between the markers of a page, in a block that no
// test runs.
func writePage(file string, r *report) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), pageBegin)
	_, after, ends := strings.Cut(rest, pageEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no %q and %q", file, strings.TrimSpace(pageBegin), strings.TrimSpace(pageEnd))
	}
	var out bytes.Buffer
	out.WriteString(before + pageBegin + "```text\n")
	out.Write(tables(r))
	out.WriteString("```\n" + pageEnd + after)
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// tables returns the tables that the program prints, the budgets first.
func tables(r *report) []byte {
	var out bytes.Buffer
	printStart(&out, r)
	printBudgets(&out, r)
	printRatios(&out, r.Platforms)
	printCompositions(&out, r.Compositions)
	printPromotions(&out, r.Promotions)
	printFleet(&out, r.Fleet)
	printInventories(&out, r.Inventories)
	smallest := map[string]*measured{}
	for _, m := range r.Platforms {
		if smallest[m.Kind] == nil {
			smallest[m.Kind] = m
		}
		printPlatform(&out, m, smallest[m.Kind])
	}
	fmt.Fprintf(&out, "\nLoad at the end: %.1f.\n", r.LoadAtEnd)
	return trimmed(out.Bytes())
}

// trimmed is a text without the space at the ends of its lines.
func trimmed(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimRight(lines[i], " ")
	}
	return bytes.Join(lines, []byte("\n"))
}
