package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/cli/go-gh/v2/pkg/prompter"

	"github.com/kalypso-io/kalypso/internal/starter"
)

// ask asks for what neither a flag nor the argument says. given says whether a flag is there;
// what is no answer is refused, and asked for again.
func (o *initOptions) ask(p *prompter.Prompter, given func(flag string) bool, told io.Writer) error {
	if !given("app") && !given("reconciler") {
		kind, err := p.Select("What do you begin?", "",
			[]string{"a platform: what runs where, with which configuration", "an application: its own " +
				"repository, for any platform"})
		if err != nil {
			return err
		}
		o.app = kind == 1
	}
	if o.dir == "" {
		dir, err := p.Input("In which folder?", ".")
		if err != nil {
			return err
		}
		o.dir = dir
	}
	if !given("environments") {
		if err := o.askEnvironments(p, told); err != nil {
			return err
		}
	}
	if !o.app && !given("reconciler") {
		i, err := p.Select("How do clusters receive what is assigned to them?", o.Reconciler, starter.Reconcilers)
		if err != nil {
			return err
		}
		o.Reconciler = starter.Reconcilers[i]
	}
	if !given("rollout") {
		i, err := p.Select("Who reports whether clusters run a commit, so that it may go on?", "", rolloutAnswers)
		if err != nil {
			return err
		}
		o.Rollout = starter.Rollouts[i]
	}
	return nil
}

// rolloutAnswers say what each of starter.Rollouts is.
var rolloutAnswers = []string{
	"no one yet: a commit goes on at once, and you name a source later",
	"a hub, with promote --hub URL",
	"Flux or Argo CD, as commit statuses in the GitOps repository",
	"the clusters, with promote --kubeconfig FILE",
	"files, with promote --report FOLDER",
}

// askEnvironments asks for the environments until they can be some.
func (o *initOptions) askEnvironments(p *prompter.Prompter, told io.Writer) error {
	usual := strings.Join(o.Environments, ", ")
	for {
		text, err := p.Input("Which environments, in the order in which commits come to them?", usual)
		if err != nil {
			return err
		}
		o.Environments = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
		err = checkEnvironments(o.Environments)
		if err == nil {
			return nil
		}
		fmt.Fprintf(told, "%v\n", err)
	}
}
