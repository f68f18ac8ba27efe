package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cli/go-gh/v2/pkg/prompter"
	"github.com/spf13/cobra"
	kubelabels "k8s.io/apimachinery/pkg/labels"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/fleet"
	"github.com/kalypso-io/kalypso/compiler/fleet/pull"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/compiler/source"
	"github.com/kalypso-io/kalypso/internal/apiserver"
	"github.com/kalypso-io/kalypso/internal/spelling"
	"github.com/kalypso-io/kalypso/internal/terminal"
)

func newInventory(g author) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "Write the files whose rows are clusters",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInventoryPull(g))
	return cmd
}

// inventoryPull is `kalypso inventory pull`.
type inventoryPull struct {
	*platform
	from, kubeconfig, context, namespace, selector string
	files, nameLabels                              []string
	dryRun, yes, exitCode                          bool
	output                                         *string
}

func newInventoryPull(g author) *cobra.Command {
	p := &inventoryPull{platform: g.platform}
	cmd := &cobra.Command{
		Use:   "pull INVENTORY [ENVIRONMENT]",
		Short: "Write an inventory's file from what knows the clusters",
		Long: `pull reads the clusters that other tools know, shows how they differ from the rows of
the inventory, and writes its file: after a question on a terminal, or with --yes.

  cluster-api  objects Cluster of cluster.x-k8s.io
  ocm          objects ManagedCluster of Open Cluster Management
  fleet        objects Cluster of Rancher Fleet
  argocd       the secrets of Argo CD's clusters: their names, servers and labels
  kubeconfig   the contexts of a kubeconfig, with the hosts of their servers
  ansible      hosts, from an inventory file or what ansible-inventory --list prints;
               the label group.G is "true" for each group G that a host is in

Objects are read from files, as kubectl get -o yaml or -o json prints them, or listed
on the API server of a context of a kubeconfig. Nothing else of them is read than names,
addresses, labels and the annotation kubernetes.io/description; no token, certificate or
variable gets into the file. The label kalypso.io/cluster-type is a cluster's type.

Rows are sorted by name, and those of clusters that are gone are taken away. Of a row
only these fields are written, and of labels those that the inventory has columns for,
or all but the ones that tools keep for themselves. Other columns stay, and so does a
field that no cluster of the source has. If the inventory has where, rows that do not
satisfy it stay as they are, and new rows get the texts that it requires.

A name that is no DNS label is written as one: in lower case, with dashes for other
characters. Two clusters of one name are an error, and so is a source without any, unless
the inventory has allowEmpty.`,
		Example: `  kalypso inventory pull stores --from ocm --kubeconfig hub.yaml --dry-run
  kalypso inventory pull stores --from cluster-api --file clusters.yaml --yes
  kalypso inventory pull hosts prod --from ansible --file inventory.ini
  kalypso inventory pull stores --from argocd --file clusters/ --exit-code --dry-run`,
		Args: func(_ *cobra.Command, args []string) error {
			if _, err := source.Root(p.dir); err != nil {
				return err // before any question that would be useless
			}
			if len(args) < 1 || len(args) > 2 {
				return usagef("name an inventory, and an environment where several have one of that name")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.run(cmd.Context(), args[0], args[1:])
		},
	}
	f := cmd.Flags()
	f.Var(&choice{&p.from, pull.Sources()}, "from",
		"what knows the clusters: "+listed(pull.Sources(), "or"))
	completeFlag(cmd, "from", values(pull.Sources()...))
	f.StringArrayVar(&p.files, "file", nil,
		"read a `FILE`, the YAML and JSON files of a folder, or stdin for -")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "list objects on the server of a kubeconfig "+
		"`FILE`, or with --from kubeconfig read its contexts")
	f.StringVar(&p.context, "context", "", "the `CONTEXT` of the kubeconfig; the current one, or "+
		"with --from kubeconfig all")
	f.StringVarP(&p.namespace, "namespace", "n", "", "only objects of this `NAMESPACE`")
	f.StringVarP(&p.selector, "selector", "l", "", "only clusters with labels that this `SELECTOR` "+
		"of Kubernetes holds for")
	f.StringArrayVar(&p.nameLabels, "name-label", nil, "a `LABEL` that holds a cluster's name, "+
		"before the object's own; the first that there is")
	f.BoolVar(&p.dryRun, "dry-run", false, "show the difference, and write nothing")
	f.BoolVarP(&p.yes, "yes", "y", false, "write without a question")
	f.BoolVar(&p.exitCode, "exit-code", false, "exit with 1 if there are differences")
	p.output = outputFlag(cmd)
	return cmd
}

func (p *inventoryPull) run(ctx context.Context, inventory string, environments []string) error {
	reader, err := p.reader()
	if err != nil {
		return err
	}
	inv, filter, file, err := p.find(ctx, inventory, environments)
	if err != nil {
		return err
	}
	if err := p.read(ctx, reader); err != nil {
		return err
	}
	clusters, err := reader.Clusters()
	for _, n := range reader.Notes() {
		fmt.Fprintln(p.err, "kalypso: "+n)
	}
	if err != nil {
		return err
	}
	d, after, err := pull.Merge(inv, filter, file.Name, file.Before, clusters)
	if err != nil {
		return err
	}
	if err := p.show(d); err != nil || after == nil {
		return err
	}
	if !p.dryRun {
		if err := p.write(ctx, file, after); err != nil {
			return err
		}
	}
	if p.exitCode {
		return errDifference
	}
	return nil
}

// reader checks the flags, and returns the clusters that they select.
func (p *inventoryPull) reader() (*pull.Reader, error) {
	objects := p.from != pull.Kubeconfig && p.from != pull.Ansible
	switch {
	case p.from == "":
		return nil, usagef("--from says what knows the clusters: there are %s",
			listed(pull.Sources(), "and"))
	case len(p.files) > 0 && p.kubeconfig != "":
		return nil, usagef("--file and --kubeconfig are two places to read from: give one of them")
	case p.from == pull.Ansible && (p.kubeconfig != "" || len(p.files) == 0):
		return nil, usagef("--from ansible reads files: --file inventory.ini, or ansible-inventory " +
			"--list | kalypso ... --file -")
	case len(p.files) == 0 && p.kubeconfig == "":
		return nil, usagef(
			"say where to read from: --kubeconfig FILE, or --file FILE with what kubectl get -o yaml " +
				"printed")
	case p.context != "" && p.kubeconfig == "" && objects:
		return nil, usagef("--context is one of --kubeconfig")
	case p.namespace != "" && !objects, p.selector != "" && p.from == pull.Kubeconfig,
		len(p.nameLabels) > 0 && !objects:
		return nil, usagef("--namespace, --selector and --name-label are about objects, and --from %s "+
			"has none with that", p.from)
	case p.dryRun && p.yes:
		return nil, usagef("--dry-run writes nothing, and --yes writes: give one of them")
	}
	r := &pull.Reader{From: p.from, NameLabels: p.nameLabels, Namespace: p.namespace,
		Context: p.context}
	if p.selector != "" {
		var err error
		if r.Selector, err = kubelabels.Parse(p.selector); err != nil {
			return nil, usagef("--selector %s: %w", p.selector, err)
		}
	}
	return r, nil
}

// find returns the inventory with a name, the filter of its rows, and its file. Where and
// file must be the same in all environments of the command.
func (p *inventoryPull) find(ctx context.Context, name string, environments []string) (
	inv *model.Inventory, filter *fleet.Filter, file *pull.File, err error) {
	err = p.withCache(func(c *cache.Cache) error {
		b, err := compiler.Evaluate(ctx, p.request(environments, c))
		if err != nil {
			return err
		}
		inv, filter, file, err = p.findIn(b, name)
		return errors.Join(err, b.Close())
	})
	return inv, filter, file, err
}

func (p *inventoryPull) findIn(b *compiler.Build, name string) (inv *model.Inventory,
	filter *fleet.Filter, file *pull.File, err error) {
	in := map[string]string{} // the environment, by the file and where
	var environment string    // the latest one in it
	var found []string
	for _, e := range b.Environments {
		if e.Model == nil {
			continue
		}
		n := slices.IndexFunc(e.Model.Inventories, func(i model.Inventory) bool { return i.Name == name })
		if n < 0 {
			continue
		}
		i := &e.Model.Inventories[n]
		f, err := pull.Open(b.Platform.Files(), e.Model, i)
		if err != nil {
			return nil, nil, nil, err
		}
		rows := f.Name
		if filter = e.Filter(i); filter != nil {
			rows += " where " + i.Where.String()
		}
		if in[rows] == "" {
			in[rows], inv, file, environment = e.Name, i, f, e.Name
			found = append(found, e.Name+", "+rows)
		}
	}
	root, err := source.Root(p.dir)
	switch {
	case err != nil:
		return nil, nil, nil, err
	case inv == nil:
		return nil, nil, nil, p.notDeclared(b, name)
	case len(found) > 1:
		return nil, nil, nil, usagef("inventory %s has another file or where in each of several "+
			"environments: name one of them (%s)", name, strings.Join(found, "; "))
	case root != b.Platform.Root:
		return nil, nil, nil, fmt.Errorf("the files of environment %s come from another branch: pull "+
			"the inventory in a worktree of that", environment)
	}
	return inv, filter, file, nil
}

// notDeclared returns the error for an inventory that no environment has: how to declare it,
// or errors of the platform, which may hide it.
func (p *inventoryPull) notDeclared(b *compiler.Build, name string) error {
	var known []string
	for _, e := range b.Environments {
		if e.Model == nil || e.Model.Invalid[model.Ref{Collection: "inventories", Name: name}] {
			return p.reportErrors(b)
		}
		for _, i := range e.Model.Inventories {
			known = append(known, i.Name)
		}
	}
	slices.Sort(known)
	if !model.IsName(name) {
		return usagef("%q is no name of an inventory", name)
	}
	if spelling.Nearest(name, known) != "" {
		return fmt.Errorf("there is no inventory %s; %s", name,
			spelling.DidYouMean(name, slices.Compact(known)))
	}
	return fmt.Errorf("there is no inventory %[1]s: declare it, in a file of an environment or of "+
		"the platform's root:\n\n"+
		"\tinventories: schema.#Inventories\n\tinventories: %[1]q: file: \"%[1]s.csv\"", name)
}

// timeout is the time that an API server has to answer.
const timeout = 2 * time.Minute

// read reads the clusters from the source that the flags name.
func (p *inventoryPull) read(ctx context.Context, r *pull.Reader) error {
	switch {
	case p.kubeconfig == "":
		return r.Files(p.files, p.path, p.in)
	case p.from == pull.Kubeconfig:
		return r.Files([]string{p.kubeconfig}, p.path, p.in)
	}
	var contexts []string
	if p.context != "" {
		contexts = []string{p.context}
	}
	servers, err := apiserver.Open(p.path(p.kubeconfig), contexts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, apiserver.ErrSilent)
	defer cancel()
	return r.Server(ctx, servers[0])
}

// show prints the differences.
func (p *inventoryPull) show(d *pull.Difference) error {
	if *p.output != "table" {
		return p.printDocument(*p.output,
			document[*pull.Difference]{apiVersion, "InventoryDifference", d})
	}
	if len(d.Clusters) == 0 {
		_, err := fmt.Fprintf(p.out, "inventory %s has these clusters: nothing differs\n", d.Inventory)
		return err
	}
	counts := map[string]int{}
	var rows [][]any
	for _, c := range d.Clusters {
		counts[c.Change]++
		var fields []string
		for _, f := range c.Fields {
			switch text := f.Name + ": "; {
			case f.Before == "":
				fields = append(fields, text+f.After)
			default:
				fields = append(fields, text+f.Before+" -> "+cmp.Or(f.After, "(none)"))
			}
		}
		rows = append(rows, []any{c.Change, c.Cluster, strings.Join(fields, ", ")})
	}
	if err := p.table([]string{"CHANGE", "CLUSTER", "FIELDS"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.out, "inventory %s, %s: %d added, %d changed, %d removed\n", d.Inventory,
		terminal.Line(d.File), counts["added"], counts["changed"], counts["removed"])
	return err
}

// write writes the file, if the user confirms it.
func (p *inventoryPull) write(ctx context.Context, file *pull.File, after []byte) error {
	if !p.yes {
		yes, err := p.confirm(ctx, "Write "+terminal.Line(file.Name)+"?")
		if err != nil {
			return err
		}
		if !yes {
			fmt.Fprintln(p.err, "kalypso: nothing is written")
			return nil
		}
	}
	if err := file.Write(after); err != nil {
		return fmt.Errorf("writing %s: %w", terminal.Line(file.Name), err)
	}
	fmt.Fprintf(p.err, "kalypso: %s is written\n", terminal.Line(file.Name))
	return nil
}

// confirm asks a question on a terminal.
func (p *inventoryPull) confirm(ctx context.Context, question string) (yes bool, err error) {
	asked := false
	if !slices.Contains(p.files, "-") {
		asked, err = p.ask(ctx, func(terminal *prompter.Prompter) (err error) {
			yes, err = terminal.Confirm(question, false)
			return err
		})
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("nothing is written: %w", err)
	case !asked:
		return false, usagef("nothing is written, because there is no terminal to ask on: --yes writes " +
			"without a question, and --dry-run only shows the difference")
	}
	return yes, nil
}
