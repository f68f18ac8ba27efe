package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/promotion/audit"
)

// Texts of other people are data in each format. Programs get such a text unchanged. Spreadsheets
// and terminals get it without characters that they would execute.
var hostileCells = []struct{ text, csv string }{
	{`=HYPERLINK("http://x.example","a")`, `'=HYPERLINK("http://x.example","a")`},
	{"+1", "'+1"}, {"-1", "'-1"}, {"@SUM(A1)", "'@SUM(A1)"}, {"\t=1", "'\t=1"},
	{"a=b, -c @d", "a=b, -c @d"}, {"'quoted'", "'quoted'"}, {"<script>&amp;", "<script>&amp;"}, {"two\nlines \"quoted\"", "two\nlines \"quoted\""},
	{"\x1b[2J\x1b]0;title\x07", "\x1b[2J\x1b]0;title\x07"}, {"a\u202eb\u2028c\u0085", "a\u202eb\u2028c\u0085"},
}

func TestHostileCSV(t *testing.T) {
	var events []audit.Event
	for _, c := range hostileCells {
		events = append(events, audit.Event{Time: time.Unix(1, 0).UTC(), Environment: "prod", What: "held", By: c.text, Reason: c.text})
	}
	var out bytes.Buffer
	if err := (inspector{newPlatform(streams{out: &out}, nil)}).auditCSV(events); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != len(hostileCells)+1 {
		t.Fatalf("%q, %v", rows, err)
	}
	for i, c := range hostileCells {
		if row := rows[i+1]; row[0] != "1970-01-01T00:00:01Z" || row[6] != c.csv || row[7] != c.csv {
			t.Errorf("%q is %q", c.text, row)
		}
	}
}

func TestHostileHub(t *testing.T) {
	for _, c := range hostileCells {
		found := &api.Assignments{Assignments: []state.Row{{Environment: "prod", Cluster: c.text, ClusterType: "edge", Target: "hello-main", State: state.Failed, Message: c.text}}}
		for _, output := range []string{"json", "yaml", "table"} {
			var out bytes.Buffer
			if err := (&hubReader{console: &console{streams: streams{out: &out}}, output: &output}).printRows(found); err != nil {
				t.Fatal(err)
			}
			if output == "table" {
				line, _ := strings.CutSuffix(out.String(), "\n")
				if strings.Count(line, "\n") != 1 || strings.ContainsFunc(strings.ReplaceAll(line, "\n", ""), func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%q is %q", c.text, line)
				}
				continue
			}
			text, err := out.Bytes(), error(nil)
			if output == "yaml" {
				text, err = yaml.YAMLToJSON(text)
			}
			var is document[*api.Assignments]
			if err == nil {
				err = json.Unmarshal(text, &is)
			}
			if err != nil || is.Item.Assignments[0].Cluster != c.text || is.Item.Assignments[0].Message != c.text || bytes.ContainsRune(out.Bytes(), '\x1b') {
				t.Errorf("%q as %s is %s, %v", c.text, output, &out, err)
			}
		}
	}
}
