package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/kalypso-io/kalypso/hub/access"
	"github.com/kalypso-io/kalypso/hub/api"
	"github.com/kalypso-io/kalypso/hub/server"
)

func newToken() *cobra.Command {
	var database, role, cluster, environment, note string
	cmd := &cobra.Command{
		Use: "token", Short: "Make a token in the hub's database", Args: cobra.NoArgs,
		Long: `token makes a token in the hub's database, and prints it: it is kept nowhere. It is for the
first one. With an admin's token, kalypso hub token makes others.`,
		Example: `  kalypso-hub token --role admin > admin.token`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !access.Role(role).Valid() {
				return fmt.Errorf("--role %s: there are cluster, enroll, viewer, operator and admin", role)
			}
			if (role == string(access.Cluster)) != (cluster != "") {
				return errors.New("a token of role cluster needs --cluster, and no other has one")
			}
			name := databaseName(database)
			begun := isNew(name)
			db, err := openStore(cmd.Context(), database)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			if begun {
				fmt.Fprintf(cmd.ErrOrStderr(),
					"kalypso-hub: %s is a new database; the token is for the hub that serves it\n", name)
			}
			known, err := db.Environments(cmd.Context())
			if err != nil {
				return err
			}
			if warning := access.Absent(environment, known); warning != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "kalypso-hub: warning: %s\n", warning)
			}
			made, err := access.NewTokens(db, time.Now).Make(cmd.Context(),
				api.Token{Role: role, Cluster: cluster, Environment: environment, Note: note,
					MadeBy: "kalypso-hub token"})
			if err != nil {
				return err
			}
			if err := db.Audit(cmd.Context(), api.Event{At: made.Made, Who: "kalypso-hub token",
				Action: "make token", Subject: made.ID, Detail: role}); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), made.Secret)
			return err
		},
	}
	databaseFlag(cmd, &database)
	f := cmd.Flags()
	f.StringVar(&role, "role", "admin",
		"what it lets one do: cluster, enroll, viewer, operator or admin")
	f.StringVar(&cluster, "cluster", "", "the `CLUSTER` of role cluster")
	f.StringVar(&environment, "env", "", "the one `ENVIRONMENT` that it is for (default: all)")
	f.StringVar(&note, "note", "", "a `TEXT` for people")
	return cmd
}

func newBackup() *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Copy a SQLite database while the hub runs",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one file for the copy")
			}
			return nil
		},
		Long: `backup writes a copy of the database, as it is at one moment, into a new file. To restore it,
stop the hub and put the copy in the place of the database, without the files -wal and
-shm beside it. PostgreSQL has its own tools: pg_dump and pg_restore.`,
		Example: `  kalypso-hub backup hub-2026-11-25.db`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := databaseName(database)
			if err := checkDatabase(name); err != nil {
				return err
			}
			if isNew(name) {
				return fmt.Errorf("there is no database %s: --database or %s names the one that the hub serves",
					name, databaseEnv)
			}
			db, err := openStore(cmd.Context(), database)
			if err != nil {
				return err
			}
			defer func() { _ = db.Close() }()
			return db.Backup(cmd.Context(), args[0])
		},
	}
	databaseFlag(cmd, &database)
	return cmd
}

func newOpenAPI() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the description of the API", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := server.OpenAPI(version())
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return err
		},
	}
}

// version returns the version of the module, as go install records it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
