package main

import (
	"cmp"
	"os"

	"github.com/spf13/pflag"

	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/observe"
)

// The environment's words for a hub, and for the token that it wants.
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

// given returns the address of the hub; "" for none.
func (o *hubOptions) given() string { return cmp.Or(o.address, os.Getenv(hubEnv)) }

// client returns the client of the hub.
func (o *hubOptions) client(g *global) (*api.Client, error) {
	if o.given() == "" {
		return nil, usagef("which hub? give its address with --hub, or as %s", hubEnv)
	}
	token, err := o.token(g)
	if err != nil {
		return nil, err
	}
	return api.NewClient(o.given(), token)
}

// token returns the token that the hub wants; "" for none.
func (o *hubOptions) token(g *global) (string, error) {
	if o.tokenFile == "" {
		return os.Getenv(hubTokenEnv), nil
	}
	return observe.ReadToken(g.path(o.tokenFile))
}
