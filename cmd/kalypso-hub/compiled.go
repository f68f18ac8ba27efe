package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/compiler"
	"github.com/kalypso-io/kalypso/compiler/cache"
	"github.com/kalypso-io/kalypso/compiler/tree"
	"github.com/kalypso-io/kalypso/compiler/worker"
	"github.com/kalypso-io/kalypso/hub/compiled"
	"github.com/kalypso-io/kalypso/promotion/session"
	viewplatform "github.com/kalypso-io/kalypso/view/platform"
)

// The bounds of the processes that compile: how many, how long without a question, and how long
// for an answer.
const (
	mostCompiled = 2
	idleCompiled = 5 * time.Minute
	compileLimit = 2 * time.Minute
)

func (p *platform) pool() *compiled.Pool {
	return &compiled.Pool{Most: mostCompiled, Idle: idleCompiled, Limit: compileLimit,
		Start: func(at compiled.At) (*exec.Cmd, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			return exec.Command(self,
				append(p.args("compiled"), "--env", at.Environment, "--base", at.Base, "--own", at.Own)...), nil
		}}
}

func newCompiled() *cobra.Command {
	var p platform
	var at compiled.At
	cmd := &cobra.Command{
		Use: "compiled", Short: "Answer what serve asks about a compiled environment", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.compiled(cmd.Context(), at) },
	}
	p.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&at.Environment, "env", "", "the `ENVIRONMENT`")
	f.StringVar(&at.Base, "base", "", "the `COMMIT` of the platform")
	f.StringVar(&at.Own, "own", "", "the `COMMIT` of the environment's own files")
	return cmd
}

func (p *platform) compiled(ctx context.Context, at compiled.At) (err error) {
	s, err := p.costs.supervise("compiling it")
	if err != nil {
		return err
	}
	workers := worker.NewPool(runtime.GOMAXPROCS(0), worker.Self(workerArgument))
	defer workers.Close()
	c, err := cache.Open(cache.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	request := compiler.Request{Cache: c, Workers: workers, Supervisor: s,
		Environments: []string{at.Environment},
		Source:       &tree.Source{Base: tree.Revision(at.Base), Environment: tree.Revision(at.Own)}}
	st, err := session.Open(ctx, p.request(request))
	if err != nil {
		return said(err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	policy := st.Platform.Policy(at.Environment)
	if policy == nil {
		return fmt.Errorf("the platform has no environment %s any more", at.Environment)
	}
	dir, remove, err := st.Platform.Assemble(ctx, policy, *request.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	request.Dir = dir
	b, err := compiler.Compile(ctx, request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	// The environment's own files are those of another commit.
	inBase := func(file string) bool { return at.Base == at.Own || !strings.HasPrefix(file, "environments/") }
	source := viewplatform.New(b,
		viewplatform.Options{Link: viewplatform.Linker(st.Platform.Repository.URL, os.Getenv, at.Base,
			p.path, inBase)})
	return compiled.Serve(ctx, os.Stdin, os.Stdout, source, at.Environment)
}
