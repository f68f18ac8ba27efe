package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/internal/apiserver"
)

// sources is a fake source: each read returns the next of its errors.
type sources struct {
	read  []error
	takes time.Duration
}

func (s *sources) Reports(context.Context) ([]api.Report, error) {
	time.Sleep(s.takes)
	err := s.read[0]
	s.read = s.read[1:]
	return []api.Report{{Cluster: "eu-1"}}, err
}

// An error does not stop the observer, and it prints each error once. It sends undelivered
// reports again.
func TestObserveGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said bytes.Buffer
	o := &observer{console: &console{streams: streams{err: &said}}, every: time.Nanosecond}
	lost, other := errors.New("no answer"), errors.New("who are you")
	s := &sources{read: []error{nil, lost, lost, other, nil, nil}}
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

// Rounds begin each --every, however long reading takes; one that takes longer than that is followed by a
// pause.
func TestObservePace(t *testing.T) {
	for _, c := range []struct{ takes, least, most time.Duration }{
		{0, 3750 * time.Millisecond, 6250 * time.Millisecond},
		{2500 * time.Millisecond, 3750 * time.Millisecond, 6250 * time.Millisecond},
		{time.Minute, 61250 * time.Millisecond, 61250 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			o := &observer{console: &console{streams: streams{err: io.Discard}}, every: 5 * time.Second}
			s := &sources{read: make([]error, 30), takes: c.takes}
			var last time.Time
			err := o.repeat(ctx, s, func(context.Context, []api.Report) (string, []api.Report, error) {
				if now := time.Now(); !last.IsZero() && (now.Sub(last) < c.least || now.Sub(last) > c.most) {
					t.Errorf("a round that takes %s follows after %s", c.takes, now.Sub(last))
				}
				if last = time.Now(); len(s.read) == 0 {
					cancel()
				}
				return "", nil, nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// The timeout for a silent server is a part of --every, so that the reports of other servers
// arrive in time. The error has a hint.
func TestObserveTimeout(t *testing.T) {
	for _, c := range []struct{ every, given, want time.Duration }{
		{0, 0, 0}, {0, time.Minute, time.Minute}, {time.Second, 0, 2 * time.Second},
		{5 * time.Second, 0, 2500 * time.Millisecond}, {5 * time.Second, 7 * time.Second, 7 * time.Second},
		{time.Minute, 0, 30 * time.Second}, {time.Hour, 0, 30 * time.Second},
	} {
		if got := (&observer{every: c.every, timeout: c.given}).requestTimeout(); got != c.want {
			t.Errorf("--every %s --request-timeout %s: %s, and should be %s", c.every, c.given, got, c.want)
		}
	}
	for from, want := range map[string]string{
		fromKubeconfig: "no answer in time\nthe clusters that answer are reported; --request-timeout gives a server more time, " +
			"and --context names others than the one that is gone",
		fromInCluster: "no answer in time\n--request-timeout gives a server more time",
	} {
		o := &observer{from: from}
		_, err := o.read(t.Context(), &sources{read: []error{apiserver.ErrSilent}})
		if err.Error() != want || !errors.Is(err, apiserver.ErrSilent) {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// The observer rejects flags that do not fit together before it sends a request.
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
		"--from ansible x --request-timeout 2s": "--request-timeout is for API servers",
		"--kubeconfig c --request-timeout 2ms":  "--request-timeout 2ms: at least a second",
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
