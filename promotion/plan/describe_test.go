package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kalypso-io/kalypso/compiler/compare"
	"github.com/kalypso-io/kalypso/promotion/message"
	"github.com/kalypso-io/kalypso/promotion/subject"
)

// many is a report of a change of a whole fleet: so many different changes, each of the
// same assignments, with values of a length.
func many(groups, assignments, value int) *compare.Report {
	r := &compare.Report{}
	var ids []string
	for i := range assignments {
		ids = append(ids, fmt.Sprintf("prod/type-%d/shop-%d", i%7, i))
	}
	r.Assignments.Changed = ids
	for i := range groups {
		to, err := json.Marshal(strings.Repeat(fmt.Sprintf("ü%d|```\n", i), value))
		if err != nil {
			panic(err)
		}
		r.Groups = append(r.Groups, compare.Group{Assignments: ids, Change: compare.Change{
			Kind: compare.Changed, File: strings.Repeat("f", 4000) + fmt.Sprint(i), Path: "data.KEY_" + strings.Repeat("x", 4000),
			From: json.RawMessage(`"old"`), To: to,
		}})
	}
	return r
}

// A body contains the important parts within the limit of a forge, whatever the size of the
// change. It drops details first, and everything left is complete.
func TestBodyWithinLimit(t *testing.T) {
	const limit = 65536
	for name, r := range map[string]*compare.Report{
		"small": many(2, 3, 1), "many changes": many(5000, 2, 1), "many assignments": many(3, 10_000, 1), "long values": many(5, 2, 50_000), "none": {},
	} {
		t.Run(name, func(t *testing.T) {
			var head strings.Builder
			head.WriteString("### Promote\n\n")
			changes(&head, &Step{Prepared: &PreparedCommit{report: r}}, subject.Form{})
			const tail = "Reproduce: `kalypso verify`\n"
			body := limitBody(limit, head.String(), tail, r, subject.Form{})
			if n := utf8.RuneCountInString(body); n > limit {
				t.Errorf("%d characters", n)
			}
			if !strings.HasSuffix(body, tail) || !strings.HasPrefix(body, "### Promote") {
				t.Error("its beginning or its end is missing")
			}
			if strings.Count(body, "<details>") != strings.Count(body, "</details>") {
				t.Error("details are cut off")
			}
			for line := range strings.Lines(head.String()) {
				if strings.HasPrefix(line, "| ff") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 4 {
					t.Errorf("a row has other cells: %s", line)
				}
				if utf8.RuneCountInString(line) > 1000 {
					t.Errorf("a line has %d characters", utf8.RuneCountInString(line))
				}
			}
			if groups := len(r.Groups); groups > maxGroups && !strings.Contains(body, fmt.Sprintf("%d more changes", groups-maxGroups)) {
				t.Error("it does not say how many changes there are")
			}
		})
	}
	if body := limitBody(40, strings.Repeat("ü", 100), "tail", nil, subject.Form{}); body != strings.Repeat("ü", 33)+"…\n\ntail" {
		t.Errorf("%q", body)
	}
}

// Texts of others name neither people nor other requests, and are not HTML, in a line
// and in a cell.
func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"fix the shop":           "fix the shop",
		"@all #1 !2 GH-3":        "@\u200ball #\u200b1 !\u200b2 GH\u200b-3",
		"&commat;all &#64;all":   "&amp;\u200bcommat;all &amp;\u200b#\u200b64;all",
		"<b> --> a|b\n\x1b[31mc": `&lt;b&gt; --&gt; a\|b  \[31mc`,
		"![x](https://x) `c`":    "!\u200b\\[x\\](https:\u200b//x) \\`c\\`",
		"acme/gitops#1 ~label":   "acme/gitops#\u200b1 \\~label",
	} {
		if got := message.Markdown(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
	if got := message.Code("a`b|c\nd"); got != "`a'b\\|c d`" {
		t.Errorf("%q", got)
	}
}
