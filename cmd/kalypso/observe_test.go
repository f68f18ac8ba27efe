package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
)

// sources are what is read, one time after the other.
type sources struct{ read []error }

func (s *sources) Reports(context.Context) ([]api.Report, error) {
	err := s.read[0]
	s.read = s.read[1:]
	return []api.Report{{Cluster: "eu-1"}}, err
}

// An error ends nothing, and is said once; what was not taken is sent again.
func TestObserveGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said bytes.Buffer
	o := &observing{global: &global{streams: streams{err: &said}}, every: time.Nanosecond}
	lost, other := errors.New("no answer"), errors.New("who are you")
	s := &sources{[]error{nil, lost, lost, other, nil, nil}}
	var sent []int
	err := o.repeat(ctx, s, func(_ context.Context, reports []api.Report) (string, []api.Report, error) {
		sent = append(sent, len(reports))
		if len(s.read) == 0 {
			cancel()
		}
		if len(sent) == 4 {
			return "the hub knows no assignment for x", reports, nil
		}
		return "", nil, nil
	})
	want := "kalypso: no answer\nkalypso: the hub knows no assignment for x\nkalypso: who are you\nkalypso: all is reported again\n"
	if !errors.Is(err, context.Canceled) || said.String() != want || len(sent) != 6 || sent[4] != 2 || sent[5] != 1 {
		t.Errorf("got %v, %v, %s", err, sent, said.String())
	}
}

// What cannot be meant is said before anything is asked.
func TestObserveFlags(t *testing.T) {
	t.Setenv(hubEnv, "")
	for args, want := range map[string]string{
		"":                                      "--from says where to read",
		"--from nowhere":                        "there are kubeconfig, in-cluster, ansible and file",
		"--from kubeconfig":                     "needs a file: --kubeconfig FILE",
		"--from ansible":                        "--from ansible needs files",
		"--from in-cluster":                     "--from in-cluster needs the name of the cluster",
		"--kubeconfig c x.json":                 "x.json: files are of --from ansible and --from file",
		"--from ansible x --context c":          "--kubeconfig and --context are of --from kubeconfig",
		"--import x --from ansible":             "--import is --from file",
		"--import x --every 1m":                 "leave out --every, --out and --cluster",
		"--from ansible x --every 1ms":          "--every 1ms: at least a second",
		"--from ansible x":                      "which hub?",
		"--assignment a":                        "--assignment needs --cluster, which has it, and --state",
		"--assignment a --cluster c --state ok": "needs what is applied: --commit, or --digest",
		"--assignment a --cluster c --state ok --digest d --commit c":        "needs what is applied: --commit, or --digest",
		"--assignment a --cluster c --state bad":                             "there are ok, progressing, drifted and failed",
		"--state ok --from ansible x":                                        "are about one --assignment",
		"--assignment a --from ansible x":                                    "--assignment reports one assignment, once",
		"--kubeconfig c --context a,b --cluster d":                           "--cluster names one cluster, and there are 2 contexts",
		"--kubeconfig c --out x --hub https://h":                             "--out writes the reports, and --hub sends them",
		"--kubeconfig c --enroll-token-file x":                               "--enroll-token-file needs --cluster, and --token-file",
		"--from ansible x --hub ftp://h":                                     `"ftp://h" is no address of a hub`,
		"--from ansible x --hub https://h --token-file " + t.TempDir() + "/": "is a directory",
	} {
		var said bytes.Buffer
		code := execute(t.Context(), append([]string{"observe"}, strings.Fields(args)...), streams{in: strings.NewReader(""), out: &said, err: &said})
		if code != int(exitFailure) || !strings.Contains(said.String(), want) {
			t.Errorf("%s: got %d, %s, want %s", args, code, said.String(), want)
		}
	}
}
