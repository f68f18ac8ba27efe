package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/observe"
	"github.com/kalypso-io/kalypso/hub/state"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

// hubReader is the commands that read from a hub.
type hubReader struct {
	*console
	hub    hubOptions
	output *string
}

func newHub(g *console) *cobra.Command {
	a := &hubReader{console: g}
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Ask a hub what really runs where",
		Long: `hub asks a hub, which keeps what is wanted of clusters and what was observed of them. An
assignment on a cluster is in one of these states:

  ok           it runs what is wanted, and is ready
  progressing  it is about to, or runs what the hub has not read yet
  suspended    somebody suspended it in its reconciler, so it gets no new commits
  behind       it runs what its branch had before
  drifted      it runs what was never promoted, was changed on the cluster, or is taken from
               another repository, branch or folder
  stale        the cluster has reported, but not lately
  missing      nobody has reported, or it is not on the cluster
  failed       it runs what is wanted, and fails`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.hub.flags(cmd.PersistentFlags(), "token-file", "ask the hub at this address")
	a.output = outputFlagIn(cmd, cmd.PersistentFlags())
	cmd.AddCommand(newHubStatus(a), newHubDrift(a), newHubHistory(a), newHubReleases(a),
		newHubPerformance(a), newHubCluster(a), newHubForget(a), newHubToken(a))
	return cmd
}

// client returns the client of the hub.
func (a *hubReader) client() (*api.Client, error) { return a.hub.client(a.console) }

// printItem prints an answer of the hub as json or yaml.
func printItem[T any](a *hubReader, kind string, item T) error {
	return a.printDocument(*a.output, document[T]{apiVersion, kind, item})
}

// selection are the flags that select assignments on clusters.
type selection struct {
	query  api.Query
	states []string
	at     string
	limit  int
}

// flags adds the flags that select the current state.
func (s *selection) flags(cmd *cobra.Command) {
	s.kept(cmd)
	cmd.Flags().StringVar(&s.query.Workspace, "workspace", "", "only this `WORKSPACE`")
	cmd.Flags().IntVar(&s.limit, "limit", 1000, "list at most so many; 0 for all")
}

// kept adds the flags that also select the history.
func (s *selection) kept(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.query.Ring, "ring", "", "only this `RING` of the environment")
	f.StringVar(&s.query.ClusterType, "cluster-type", "", "only this `CLUSTER-TYPE`")
	f.StringVar(&s.query.Class, "class", "",
		"only this `CLASS` of clusters: its name, or that of its folder")
	f.StringVar(&s.query.Cluster, "cluster", "", "only this `CLUSTER`")
	f.StringVar(&s.query.Workload, "workload", "", "only this `WORKLOAD`")
	f.StringVar(&s.query.Version, "version", "", "only this `VERSION` of workloads")
	f.StringVar(&s.query.Target, "deployment-target", "", "only this `TARGET`, by its full name")
	f.StringVar(&s.query.Base, "base", "", "only what was compiled from this `COMMIT` of the "+
		"platform, of which 7 digits are enough")
}

// stateFlag adds the flag for states.
func (s *selection) stateFlag(cmd *cobra.Command, usage string) {
	f := cmd.Flags()
	f.StringSliceVar(&s.states, "state", nil, usage+": "+listed(state.Names(), "or"))
	completeFlag(cmd, "state", inList(f.Lookup("state"), values(state.Names()...)))
}

// environment takes the environment from the arguments.
func environment(args []string) (string, error) {
	switch len(args) {
	case 0:
		return "", nil
	case 1:
		return args[0], nil
	}
	return "", usagef("name one environment, and not %d", len(args))
}

// read returns the query.
func (s *selection) read(args []string) (api.Query, error) {
	q := s.query
	var err error
	if q.Environment, err = environment(args); err != nil {
		return q, err
	}
	for _, name := range s.states {
		st, err := state.Parse(name)
		if err != nil {
			return q, usagef("--state %w", err)
		}
		q.States = append(q.States, st)
	}
	q.At, err = readPast("at", s.at)
	return q, err
}

// dimensionNames are the values of --by, and the headers of columns.
var dimensionNames = map[state.Dimension]string{state.ByClusterType: "cluster-type",
	state.ByTarget: "deployment-target"}

func dimensionName(d state.Dimension) string { return cmp.Or(dimensionNames[d], string(d)) }

func dimensionList() (out []string) {
	for _, d := range state.Dimensions() {
		out = append(out, dimensionName(d))
	}
	return out
}

func newHubStatus(a *hubReader) *cobra.Command {
	s := &selection{}
	var by []string
	var all bool
	cmd := &cobra.Command{
		Use:   "status [ENVIRONMENT]",
		Short: "Count what runs where, and list it",
		Long: `status counts assignments on clusters: those of each environment or, of one, those of each
workload and version. The denominator is what is wanted, also of clusters that never
reported. --list and --state list what is counted.

With --at, counts are of up to ten seconds before that time, and lists are of that very time;
with --cluster, counts are, too. Of an earlier time, there are no workspaces.`,
		Example: `  kalypso hub status
  kalypso hub status prod --by ring,workload
  kalypso hub status prod --workload shop --state failed,stale   # which ones, since when and why
  kalypso hub status prod --at 2h                                # two hours ago
  kalypso hub status prod --at 2h --ring canary --state failed   # which ones had failed then`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := s.read(args)
			if err != nil {
				return err
			}
			dimensions, err := readDimensions(by, q.Environment)
			if err != nil {
				return err
			}
			if all || len(q.States) > 0 {
				if len(by) > 0 {
					return usagef("--by counts, and --list and --state list: leave out one of them")
				}
				out := &api.Assignments{Assignments: []state.Row{}} // in the order of the hub
				if err := a.assignments(cmd.Context(), q, s.limit, out, func() {}); err != nil {
					return err
				}
				return a.printRows(out)
			}
			return a.counts(cmd.Context(), q, dimensions)
		},
	}
	s.flags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&by, "by", nil, "count by at most three of "+strings.Join(dimensionList(), ", "))
	completeFlag(cmd, "by", inList(f.Lookup("by"), values(dimensionList()...)))
	s.stateFlag(cmd, "list what is in these states")
	f.BoolVar(&all, "list", false, "list the assignments on clusters that are counted")
	f.StringVar(&s.at, "at", "", "as it was at a `TIME`, or so long ago, as 2h")
	return cmd
}

func readDimensions(names []string, environment string) ([]state.Dimension, error) {
	if len(names) == 0 && environment == "" {
		return []state.Dimension{state.ByEnvironment}, nil
	}
	if len(names) == 0 {
		return []state.Dimension{state.ByWorkload, state.ByVersion}, nil
	}
	var out []state.Dimension
	for _, name := range names {
		i := slices.IndexFunc(state.Dimensions(),
			func(d state.Dimension) bool { return dimensionName(d) == name })
		if i < 0 {
			return nil, usagef("--by %s: there are %s", name, listed(dimensionList(), "and"))
		}
		out = append(out, state.Dimensions()[i])
	}
	if len(out) > 3 {
		return nil, usagef("--by takes at most three, and not %d", len(out))
	}
	return out, nil
}

func (a *hubReader) counts(ctx context.Context, q api.Query, by []state.Dimension) error {
	hub, err := a.client()
	if err != nil {
		return err
	}
	found, err := hub.Counts(ctx, q, by...)
	if err != nil {
		return err
	}
	var empty map[string]string
	environments, whole := []state.Dimension{state.ByEnvironment},
		reflect.DeepEqual(q, api.Query{Environment: q.Environment})
	if whole && len(found.Groups) == 0 && *a.output == "table" {
		by = environments // which shows why there is nothing
	}
	if whole && slices.Equal(by, environments) {
		if empty, err = addEmpty(ctx, hub, found, q.Environment); err != nil {
			return err
		}
	}
	if whole && len(found.Groups) == 0 && found.Problem != "" {
		return fmt.Errorf("the hub knows of nothing that is wanted: %s", terminal.Line(found.Problem))
	}
	a.tell(found.Caveats)
	if *a.output != "table" {
		return printItem(a, "HubCounts", found)
	}
	var header []string
	for _, d := range by {
		header = append(header, strings.ToUpper(strings.ReplaceAll(dimensionName(d), "-", " ")))
	}
	var rows [][]any
	for _, g := range found.Groups {
		var cells []any
		for _, d := range by {
			cells = append(cells, cmp.Or(g.Values[string(d)], "-"))
		}
		rows = append(rows,
			append(cells, cmp.Or(empty[g.Values[string(state.ByEnvironment)]], g.Counts.String())))
	}
	return a.table(append(header, "STATE"), rows)
}

// addEmpty adds the environments without desired assignments, in the order of promotion: all such
// environments, or only the given one. It returns the known reasons why they are empty.
func addEmpty(ctx context.Context, hub *api.Client, found *api.Groups,
	environment string) (map[string]string, error) {
	all, err := hub.Environments(ctx)
	if err != nil {
		return nil, err
	}
	why, groups := map[string]string{}, []api.Group{}
	for _, e := range all.Environments {
		if environment != "" && environment != e.Name {
			continue
		}
		i := slices.IndexFunc(found.Groups,
			func(g api.Group) bool { return g.Values[string(state.ByEnvironment)] == e.Name })
		if i >= 0 {
			groups = append(groups, found.Groups[i])
			continue
		}
		switch {
		case e.Commit == "" && e.Problem != "":
			why[e.Name] = "nothing could be read yet"
		case e.Commit == "":
			why[e.Name] = "nothing was promoted yet"
		}
		groups = append(groups, api.Group{Values: map[string]string{string(state.ByEnvironment): e.Name}})
	}
	found.Groups = groups
	return why, nil
}

// assignments adds assignments on clusters to an answer, page by page, and calls f after each.
func (a *hubReader) assignments(ctx context.Context, q api.Query, limit int, out *api.Assignments,
	f func()) error {
	hub, err := a.client()
	if err != nil {
		return err
	}
	return a.pages(limit, func(cursor string, most int) (int, string, error) {
		page, err := hub.Assignments(ctx, q, cursor, most)
		if err != nil {
			return 0, "", err
		}
		if cursor == "" {
			out.Caveats = page.Caveats
			a.tell(page.Caveats)
		}
		out.At, out.Assignments = page.At, append(out.Assignments, page.Assignments...)
		f()
		return len(page.Assignments), page.Next, nil
	})
}

// pages calls f for each page of a list, with its cursor and the largest number of items. f
// returns the number of its items, and the cursor of the next page; "" if it is the last. If
// limit is not 0 and cuts the list, pages prints a note.
func (a *hubReader) pages(limit int,
	f func(cursor string, most int) (n int, next string, err error)) error {
	for cursor, taken := "", 0; ; {
		most := 1000
		if limit > 0 {
			most = min(most, limit-taken)
		}
		n, next, err := f(cursor, most)
		if err != nil || next == "" {
			return err
		}
		cursor, taken = next, taken+n
		if limit > 0 && taken >= limit {
			a.tellMore(limit)
			return nil
		}
	}
}

// tell prints the warnings that come with an answer.
func (a *hubReader) tell(c api.Caveats) {
	if c.Problem != "" {
		fmt.Fprintf(a.err, "kalypso: warning: what is wanted may be older than the branches: %s\n",
			terminal.Line(c.Problem))
	}
	if c.Warning != "" {
		fmt.Fprintf(a.err, "kalypso: warning: %s\n", terminal.Line(c.Warning))
	}
}

// tellMore prints a note that a list was cut.
func (a *hubReader) tellMore(limit int) {
	fmt.Fprintf(a.err, "kalypso: there are more than these %d: give another --limit, or select less\n",
		limit)
}

func (a *hubReader) printRows(found *api.Assignments) error {
	if *a.output != "table" {
		return printItem(a, "HubAssignments", found)
	}
	var rows [][]any
	for i := range found.Assignments {
		r := &found.Assignments[i]
		rows = append(rows, []any{r.Cluster, r.ID(), cmp.Or(r.Version, "-"), r.State, when(r.Holds()),
			cmp.Or(reasonOf(r), "-")})
	}
	return a.table([]string{"CLUSTER", "ASSIGNMENT", "VERSION", "STATE", "SINCE", "REASON"}, rows)
}

// reasonOf returns why an assignment on a cluster is not ok.
func reasonOf(r *state.Row) string {
	why := r.Message
	switch r.State {
	case state.Behind, state.Drifted:
		if commit := r.Runs(); commit != "" {
			why = strings.TrimSuffix("is at commit "+shortRevision(commit)+": "+why, ": ")
		}
	case state.Stale:
		why = "last news at " + when(r.Seen)
	case state.Missing:
		switch {
		case !r.At.IsZero():
			why = "it is not on the cluster"
		case !r.Seen.IsZero():
			why = "the cluster has reported, and not this"
		default:
			why = "nobody has reported"
		}
	case state.OK:
		why = ""
	}
	return terminal.Line(why)
}

// when is a time as tables have it.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04Z")
}

// The environment variables for the hub's address and for its token.
const (
	hubEnv      = "KALYPSO_HUB"
	hubTokenEnv = "KALYPSO_HUB_TOKEN"
)

// hubOptions are the flags of commands that ask a hub.
type hubOptions struct{ address, tokenFile string }

// flags adds them; token is the name of the flag with the token's file.
func (o *hubOptions) flags(f *pflag.FlagSet, token, usage string) {
	f.StringVar(&o.address, "hub", "", usage+", a `URL` (default: "+hubEnv+")")
	f.StringVar(&o.tokenFile, token, "",
		"a `FILE` with the token that the hub wants (default: "+hubTokenEnv+", for none no token)")
}

// given returns the address of the hub. It returns "" if none is configured.
func (o *hubOptions) given() string { return cmp.Or(o.address, os.Getenv(hubEnv)) }

// client returns the client of the hub.
func (o *hubOptions) client(g *console) (*api.Client, error) {
	if o.given() == "" {
		return nil, usagef("which hub? give its address with --hub, or as %s", hubEnv)
	}
	token, err := o.token(g)
	if err != nil {
		return nil, err
	}
	return api.NewClient(o.given(), token)
}

// token returns the token for the hub. It returns "" if none is configured.
func (o *hubOptions) token(g *console) (string, error) {
	if o.tokenFile == "" {
		return os.Getenv(hubTokenEnv), nil
	}
	return observe.ReadToken(g.path(o.tokenFile))
}

func newHubDrift(a *hubReader) *cobra.Command {
	s := &selection{}
	cmd := &cobra.Command{
		Use:   "drift [ENVIRONMENT]",
		Short: "List what runs and is not what is wanted, the oldest first",
		Long: `drift lists the assignments on clusters that run something else than what is wanted: what
their branch had before (behind), or what it never had or somebody changed on the
cluster (drifted).`,
		Example: `  kalypso hub drift prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := s.read(args)
			if err != nil {
				return err
			}
			q.States = []state.State{state.Behind, state.Drifted}
			return a.oldest(cmd.Context(), q, s.limit)
		},
	}
	s.flags(cmd)
	return cmd
}

// oldest prints the assignments on clusters that have been in their state for the longest time,
// out of all assignments.
func (a *hubReader) oldest(ctx context.Context, q api.Query, limit int) error {
	out, cut := &api.Assignments{Assignments: []state.Row{}}, false
	err := a.assignments(ctx, q, 0, out, func() {
		slices.SortStableFunc(out.Assignments,
			func(x, y state.Row) int { return x.Holds().Compare(y.Holds()) })
		if limit > 0 && len(out.Assignments) > limit {
			out.Assignments, cut = out.Assignments[:limit], true
		}
	})
	if err != nil {
		return err
	}
	if cut {
		a.tellMore(limit)
	}
	return a.printRows(out)
}
