package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/observe"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// Where observe reads from.
const (
	fromKubeconfig = "kubeconfig"
	fromInCluster  = apiserver.InCluster
	fromAnsible    = "ansible"
	fromFile       = "file"
)

// observer is `kalypso observe`.
type observer struct {
	*console
	hub                            hubOptions
	from, kubeconfig, cluster      string
	contexts                       []string
	every, timeout                 time.Duration
	out, imported, enrollTokenFile string
	item                           api.Item
	files                          []string
}

func newObserve(g *console) *cobra.Command {
	o := &observer{console: g}
	cmd := &cobra.Command{
		Use:   "observe [FILE...]",
		Short: "Report to a hub what clusters run",
		Long: `observe reads what clusters run, and reports it to a hub. It knows nothing of what they
should run: the hub compares.

  kubeconfig  objects of Flux, Argo CD and Fleet on the clusters of contexts, each a
              cluster of that name, and those that Applications and BundleDeployments
              there are for
  in-cluster  the same of the cluster on which it runs as a pod, with the permissions
              of its service account
  ansible     the rollout reports that the role of kalypso's playbooks writes, in files
              and folders
  file        what --out wrote, of a cluster that reaches no hub

Of Kubernetes clusters it reports all that kalypso brought there, and what is not there
any more is known to be gone. What the hub has already is not sent again.

--assignment reports a single one, from any script: with the commit of the GitOps
branch, or with the git id of the folder, that is applied.

With --every it goes on until it is terminated. An error ends nothing then, and is said
when it is another one than before. An API server that does not answer within
--request-timeout keeps no other cluster from being reported.

The token is in ` + hubTokenEnv + ` or in a file; with --enroll-token-file, a cluster that
has none yet gets its own.`,
		Example: `  kalypso observe --from kubeconfig --kubeconfig fleet.yaml --context eu-1,eu-2 --every 1m
  kalypso observe --from ansible /srv/reports --hub https://hub.example.com
  kalypso observe --from kubeconfig --kubeconfig edge.yaml --out edge.jsonl   # to be carried
  kalypso observe --import edge.jsonl
  kalypso observe --cluster vm-17 --assignment prod/edge/hello-main --state ok --commit 4f2a9c1d0e8b7a6f5c3d2e1f0a9b8c7d6e5f4a3b`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = args
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	o.hub.flags(f, "token-file", "report to the hub at this address")
	sources := []string{fromKubeconfig, fromInCluster, fromAnsible, fromFile}
	f.Var(&choice{&o.from, sources}, "from", "where to read: "+listed(sources, "or"))
	completeFlag(cmd, "from", values(sources...))
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "read the clusters of a kubeconfig `FILE`")
	f.StringSliceVar(&o.contexts, "context", nil, "a `CONTEXT` of the kubeconfig; again for more "+
		"(default: the current one)")
	f.StringVar(&o.cluster, "cluster", "", "the `CLUSTER`, where the platform has another one than "+
		"the context, or than a file without one")
	f.DurationVar(&o.every, "every", 0, "go on, and read again after about this `DURATION`")
	f.DurationVar(&o.timeout, "request-timeout", 0, "how long the API server of one cluster may "+
		"take, a `DURATION` (default: half of --every, but 2s at least and 30s at most; 30s without "+
		"--every)")
	f.StringVar(&o.out, "out", "", "append the reports to a `FILE` that --import takes, signed "+
		"where there is a token, or write them to stdout for -, and send nothing")
	f.StringVar(&o.imported, "import", "",
		"send the reports of a `FILE`, or those on stdin for -, as --from file does")
	f.StringVar(&o.enrollTokenFile, "enroll-token-file", "", "a `FILE` with a token of role enroll, "+
		"for which the cluster gets its own, which --token-file keeps; remove that file for another one")
	f.StringVar(&o.item.Assignment, "assignment", "", "report one `ASSIGNMENT`: "+
		"<environment>/<cluster type>/<deployment target>")
	f.StringVar(&o.item.Commit, "commit", "",
		"the `COMMIT` of the GitOps branch that is applied, in full")
	f.StringVar(&o.item.Digest, "digest", "",
		"the `DIGEST` of the folder that is applied: its git tree id")
	states := []string{"ok", "progressing", "drifted", "failed"}
	f.Var(&choice{&o.item.State, states}, "state", "its state: "+listed(states, "or"))
	completeFlag(cmd, "state", values(states...))
	f.StringVar(&o.item.Message, "message", "", "the `REASON` for it")
	return cmd
}

// check returns an error if the flags are wrong or do not fit together.
func (o *observer) check() error {
	if o.imported != "" {
		if o.from != "" && o.from != fromFile {
			return usagef("--import is --from file: leave out --from %s", o.from)
		}
		o.from, o.files = fromFile, append(o.files, o.imported)
	}
	if o.from == "" && o.kubeconfig != "" {
		o.from = fromKubeconfig
	}
	single := o.item.Assignment != ""
	files := o.from == fromAnsible || o.from == fromFile
	switch {
	case single && (o.from != "" || o.every != 0 || len(o.files) > 0):
		return usagef("--assignment reports one assignment, once: leave out --from, --every and files")
	case single && (o.cluster == "" || o.item.State == ""):
		return usagef("--assignment needs --cluster, which has it, and --state")
	case single && (o.item.Commit == "") == (o.item.Digest == ""):
		return usagef("--assignment needs what is applied: --commit, or --digest of the folder")
	case !single && o.item != (api.Item{}):
		return usagef("--commit, --digest, --state and --message are about one --assignment")
	case !single && o.from == "":
		return usagef("--from says where to read: there are kubeconfig, in-cluster, ansible and file; " +
			"--assignment reports a single one")
	case o.from == fromKubeconfig && o.kubeconfig == "":
		return usagef("--from kubeconfig needs a file: --kubeconfig FILE")
	case o.from != fromKubeconfig && (o.kubeconfig != "" || len(o.contexts) > 0):
		return usagef("--kubeconfig and --context are of --from kubeconfig")
	case files && len(o.files) == 0:
		return usagef("--from %s needs files: name them", o.from)
	case !files && len(o.files) > 0:
		return usagef("%s: files are of --from ansible and --from file", o.files[0])
	case o.from == fromInCluster && o.cluster == "":
		return usagef("--from in-cluster needs the name of the cluster: --cluster NAME")
	case o.cluster != "" && len(o.contexts) > 1:
		return usagef("--cluster names one cluster, and there are %d contexts", len(o.contexts))
	case o.from == fromFile && (o.every != 0 || o.out != "" || o.cluster != ""):
		return usagef(
			"--from file sends what was observed elsewhere, once: leave out --every, --out and --cluster")
	case o.every < 0 || o.every > 0 && o.every < time.Second:
		return usagef("--every %s: at least a second", o.every)
	case o.timeout != 0 && files || o.timeout != 0 && single:
		return usagef(
			"--request-timeout is for API servers: it goes with --from kubeconfig and --from in-cluster")
	case o.timeout < 0 || o.timeout > 0 && o.timeout < time.Second:
		return usagef("--request-timeout %s: at least a second", o.timeout)
	case o.out != "" && o.hub.address != "":
		return usagef("--out writes the reports, and --hub sends them: give one of them")
	case o.enrollTokenFile != "" && (o.hub.tokenFile == "" || o.cluster == "" || o.out != ""):
		return usagef("--enroll-token-file needs --cluster, and --token-file for its token")
	}
	return nil
}

func (o *observer) run(ctx context.Context) error {
	if o.from == fromFile {
		// Send the reports of files, however large they are.
		client, err := o.client(ctx)
		if err != nil {
			return err
		}
		sent, err := observe.NewSender(client).SendEach(ctx, observe.ReadFiles(o.in, o.paths()...))
		if sent.Read == 0 && err == nil {
			fmt.Fprintf(o.err, "kalypso: there is no report in %s: nothing was sent\n",
				strings.Join(o.files, ", "))
		}
		if note := sent.String(); note != "" {
			fmt.Fprintf(o.err, "kalypso: %s\n", note)
		}
		return errors.Join(sent.Err(), err)
	}
	source, err := o.source()
	if err != nil {
		return err
	}
	deliver := o.write
	if o.out == "" {
		if deliver, err = o.sender(ctx); err != nil {
			return err
		}
	}
	if o.every == 0 {
		return o.once(ctx, source, deliver)
	}
	return o.repeat(ctx, source, deliver)
}

// delivery delivers reports. It returns a note for the user, and the reports that it has to
// deliver again.
type delivery func(ctx context.Context, reports []api.Report) (note string, left []api.Report,
	err error)

func (o *observer) once(ctx context.Context, source observe.Source, deliver delivery) error {
	reports, err := o.read(ctx, source)
	if err != nil && len(reports) == 0 {
		return err
	}
	note, _, problem := deliver(ctx, reports)
	if note != "" {
		fmt.Fprintf(o.err, "kalypso: %s\n", note)
	}
	return errors.Join(err, problem)
}

// read reads a source. If a server does not answer, the error has a hint.
func (o *observer) read(ctx context.Context, source observe.Source) ([]api.Report, error) {
	reports, err := source.Reports(ctx)
	if errors.Is(err, apiserver.ErrSilent) {
		hint := "--request-timeout gives a server more time"
		if o.from == fromKubeconfig {
			hint = "the clusters that answer are reported; " + hint +
				", and --context names others than the one that is gone"
		}
		err = fmt.Errorf("%w\n%s", err, hint)
	}
	return reports, err
}

// requestTimeout returns the time limit for the API server of one cluster; 0 for the default. The
// rest of a round is for sending.
func (o *observer) requestTimeout() time.Duration {
	if o.timeout > 0 || o.every == 0 {
		return o.timeout
	}
	return min(max(o.every/2, 2*time.Second), 30*time.Second)
}

// repeat reads and sends in rounds until the context ends. It keeps the time between the starts of
// two rounds constant, and pauses briefly after a round that takes longer.
func (o *observer) repeat(ctx context.Context, source observe.Source, deliver delivery) error {
	said := ""
	var left []api.Report
	for {
		begun := time.Now()
		reports, err := o.read(ctx, source)
		var note string
		var problem error
		note, left, problem = deliver(ctx, append(left, reports...))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		said = o.say(said, note, errors.Join(err, problem))
		pause := jitter(o.every) + o.every/4 - time.Since(begun)
		if err := httpclient.Wait(ctx, max(pause, o.every/4)); err != nil {
			return err
		}
	}
}

// say prints the problems, unless they are the same as in the last round.
func (o *observer) say(said, note string, err error) string {
	text := note
	if err != nil {
		text = strings.TrimPrefix(note+"\n", "\n") + err.Error()
	}
	if text == said {
		return said
	}
	for line := range strings.Lines(cmp.Or(text, "all is reported again")) {
		fmt.Fprintf(o.err, "kalypso: %s\n", strings.TrimSuffix(line, "\n"))
	}
	return text
}

// single is a source of one report.
type single api.Report

// Reports returns the report.
func (s single) Reports(context.Context) ([]api.Report, error) {
	return []api.Report{api.Report(s)}, nil
}

// source returns the source to read from.
func (o *observer) source() (observe.Source, error) {
	now, err := clock()
	if err != nil {
		return nil, err
	}
	var servers []*apiserver.Server
	switch o.from {
	case fromAnsible:
		return observe.NewRunReports(o.paths(), o.cluster), nil
	case fromInCluster:
		var server *apiserver.Server
		if server, err = apiserver.OpenInCluster(); err == nil {
			servers = append(servers, server)
		}
	case fromKubeconfig:
		servers, err = apiserver.Open(o.path(o.kubeconfig), o.contexts)
	default:
		return single{Cluster: o.cluster, By: "kalypso observe", At: now(), Items: []api.Item{o.item}},
			nil
	}
	if err != nil {
		return nil, err
	}
	clusters := observe.NewClusters(servers,
		func(context string) string { return cmp.Or(o.cluster, context) }, now)
	clusters.Timeout = o.requestTimeout()
	return clusters, nil
}

// paths returns the paths of the files.
func (o *observer) paths() []string {
	var out []string
	for _, file := range o.files {
		if o.from != fromFile || file != observe.Stdin {
			file = o.path(file)
		}
		out = append(out, file)
	}
	return out
}

// write appends reports to the file.
func (o *observer) write(_ context.Context, reports []api.Report) (string, []api.Report, error) {
	token, err := o.hub.token(o.console)
	if err != nil {
		return "", reports, err
	}
	if o.out == "-" {
		return "", nil, observe.Write(o.console.out, reports, token)
	}
	f, err := os.OpenFile(o.path(o.out), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return "", reports, err
	}
	return "", nil, errors.Join(observe.Write(f, reports, token), f.Close())
}

// sender returns a function that sends reports to the hub. It enrolls the cluster if the flags
// request that. It enrolls it again if the hub rejects the token and somebody has removed the
// token's file.
func (o *observer) sender(ctx context.Context) (delivery, error) {
	client, err := o.client(ctx)
	if err != nil {
		return nil, err
	}
	sender, refused := observe.NewSender(client), false
	return func(ctx context.Context, reports []api.Report) (string, []api.Report, error) {
		if _, absent := os.Stat(o.path(o.hub.tokenFile)); refused && errors.Is(absent, fs.ErrNotExist) {
			again, err := o.client(ctx)
			if err != nil {
				return "", reports, err
			}
			client, sender = again, observe.NewSender(again)
		}
		defer client.CloseIdle()
		sent, err := sender.Send(ctx, reports)
		err = errors.Join(sent.Err(), err)
		if len(sent.Unknown) > 0 && o.item.Assignment != "" {
			err = errors.Join(err, errors.New("nothing was reported"))
		}
		answer := (*api.Error)(nil)
		refused = o.enrollTokenFile != "" && errors.As(err, &answer) &&
			answer.Status == http.StatusUnauthorized
		if refused {
			err = fmt.Errorf("%w; to enrol cluster %s again, remove %s", err, o.cluster,
				o.path(o.hub.tokenFile))
		}
		return sent.String(), sent.Left, err
	}, nil
}

func (o *observer) client(ctx context.Context) (*api.Client, error) {
	if o.enrollTokenFile == "" {
		return o.hub.client(o.console)
	}
	enrolling := hubOptions{o.hub.address, o.enrollTokenFile}
	hub, err := enrolling.client(o.console)
	if err != nil {
		return nil, err
	}
	token, err := observe.Enroll(ctx, hub, o.cluster, o.path(o.hub.tokenFile))
	if err != nil {
		return nil, err
	}
	return api.NewClient(o.hub.given(), token)
}
