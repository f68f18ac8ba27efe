package observe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/terminal"
	"github.com/kalypso-io/kalypso/promotion/rollout"
	"github.com/kalypso-io/kalypso/promotion/rollout/report"
)

// RunReports reads the files of package promotion/rollout/report, which Ansible's role writes. It
// is for one goroutine.
type RunReports struct {
	paths   []string
	cluster string
	read    map[string][sha256.Size]byte // the reported content, by file
}

var _ Source = (*RunReports)(nil)

// NewRunReports returns the source of some files, and of the files in folders whose names end in
// .json. cluster is the name for files that do not name one.
func NewRunReports(paths []string, cluster string) *RunReports {
	return &RunReports{paths: paths, cluster: cluster, read: map[string][sha256.Size]byte{}}
}

// Reports returns the reports of the files that have changed since they were last read: an
// unchanged file is not reported again. The reports are not snapshots, because a run is about one
// environment.
func (s *RunReports) Reports(ctx context.Context) ([]api.Report, error) {
	var out []api.Report
	var problems []error
	for _, path := range s.paths {
		problems = append(problems, report.Each(ctx, path, func(file string, data []byte) error {
			sum := sha256.Sum256(data)
			if s.read[file] == sum {
				return nil
			}
			parsed, err := report.Parse(file, data)
			if err == nil && parsed.Cluster == "" && s.cluster == "" {
				err = fmt.Errorf("%s names no cluster: give its name", file)
			}
			if err != nil { // the others count
				problems = append(problems, err)
				return nil
			}
			s.read[file] = sum
			out = append(out, s.reportsOf(file, parsed)...)
			return nil
		}))
	}
	return sorted(out), errors.Join(problems...)
}

var runStates = map[rollout.State]state.ReportedState{rollout.Healthy: state.ReportedOK,
	rollout.Progressing: state.ReportedProgressing, rollout.Failed: state.ReportedFailed}

// reportsOf returns a report for each time that a file has.
func (s *RunReports) reportsOf(file string, f *report.File) []api.Report {
	cluster := f.Cluster
	if cluster == "" {
		cluster = s.cluster
	}
	byTime := map[time.Time][]api.Item{}
	for _, e := range f.Reports {
		item := api.Item{
			Assignment: e.Assignment, Commit: f.Commit.String(), State: runStates[e.State].String(),
			Repository: f.Origin.Repository, Branch: f.Origin.Branch, Path: f.Origin.Path,
		}
		if e.State != rollout.Healthy {
			item.Message = bounded(e.Message)
		}
		byTime[e.At.UTC()] = append(byTime[e.At.UTC()], item)
	}
	var out []api.Report
	for at, items := range byTime {
		slices.SortFunc(items, compare)
		out = append(out,
			api.Report{Cluster: terminal.Line(cluster), By: terminal.Line(file), At: at, Items: items})
	}
	return out
}

// maxLine limits the bytes of a line in a file of reports. It is more than a hub accepts.
const maxLine = 16 << 20

// FileReport is a report in a file that is carried to a hub.
type FileReport struct {
	api.Report
	Signed *api.SignedReport // nil if it is not signed
	Place  string            // the file and the line
}

// Stdin is the path that stands for the standard input.
const Stdin = "-"

// ReadFiles reads the reports of files that Write wrote, one after the other, in their order. The
// path Stdin is stdin. It ends with the first error, which names the invalid line.
func ReadFiles(stdin io.Reader, paths ...string) iter.Seq2[*FileReport, error] {
	return func(yield func(*FileReport, error) bool) {
		for _, path := range paths {
			if path == Stdin {
				if !readLines("stdin", stdin, yield) {
					return
				}
				continue
			}
			f, err := os.Open(path)
			if err != nil {
				yield(nil, err)
				return
			}
			more := readLines(path, f, yield)
			_ = f.Close()
			if !more {
				return
			}
		}
	}
}

// readLines reads the reports of a file. It returns false if reading must stop.
func readLines(path string, from io.Reader, yield func(*FileReport, error) bool) bool {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		r, err := parseLine(line)
		if err != nil || r.Cluster == "" {
			yield(nil, fmt.Errorf("%s:%d: this is no report that kalypso observe --out wrote%s", path, n,
				because(err)))
			return false
		}
		r.Place = fmt.Sprintf("%s:%d", path, n)
		if !yield(r, nil) {
			return false
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		yield(nil, fmt.Errorf("%s:%d: this line has more than %d MiB, and no hub takes such a report",
			path, n, maxLine>>20))
		return false
	case err != nil:
		yield(nil, fmt.Errorf("%s:%d: %w", path, n, err))
		return false
	}
	return true
}

// parseLine reads a report or a signed report.
func parseLine(line []byte) (*FileReport, error) {
	r := &FileReport{}
	signed := &api.SignedReport{}
	if json.Unmarshal(line, signed) == nil && signed.Signature != "" {
		r.Signed, line = signed, signed.Report
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r.Report)
	if err == nil && dec.More() {
		err = errors.New("more follows")
	}
	return r, err
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// Write writes reports as JSON, a line each. It signs them with a token, unless token is "".
func Write(to io.Writer, reports []api.Report, token string) error {
	w := bufio.NewWriter(to)
	enc := json.NewEncoder(w)
	for i := range reports {
		var line any = &reports[i]
		if token != "" {
			signed, err := api.Sign(token, &reports[i])
			if err != nil {
				return err
			}
			line = signed
		}
		if err := enc.Encode(line); err != nil {
			return err
		}
	}
	return w.Flush()
}
