package hub_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/kalypso-io/kalypso/hub"
	"github.com/kalypso-io/kalypso/hub/server"
	"github.com/kalypso-io/kalypso/hub/store"
	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

// databaseEnv makes the test program run a hub on a database and print its address.
const databaseEnv = "KALYPSO_TEST_HUB"

func TestMain(m *testing.M) {
	if database := os.Getenv(databaseEnv); database != "" {
		if err := serve(database); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	isolated.Main(m)
}

func serve(database string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, database)
	if err != nil {
		return err
	}
	h, err := hub.Open(ctx, hub.Options{Store: db, StaleAfter: time.Hour, Now: time.Now, Problem: func(err error) { fmt.Fprintln(os.Stderr, err) }})
	if err != nil {
		return err
	}
	go h.Run(ctx)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return (&http.Server{Handler: server.New(server.Options{Hub: h}), ReadHeaderTimeout: time.Minute}).Serve(listener)
}
