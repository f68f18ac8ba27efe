package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
)

// Token is a stored token, without its secret. Hash is the hash of the secret, in hexadecimal
// digits. SigningKey is the public key that verifies signatures of the token, or "" if it has no
// such key.
type Token struct {
	api.Token
	Hash, SigningKey string
}

// credentials owns the tables with which a hub identifies callers. They have the tokens, the ended
// sessions, and the secrets that all hubs of a database share.
type credentials struct{ *database }

const tokenColumns = "id, hash, signing_key, role, cluster, environment, note, made, made_by, " +
	"expires, used, revoked"

// AddTokens adds tokens, whose ids must be new.
func (s *credentials) AddTokens(ctx context.Context, tokens ...Token) error {
	var values []any
	for _, t := range tokens {
		values = append(values, t.ID, t.Hash, t.SigningKey, t.Role, t.Cluster, t.Environment, t.Note,
			millis(t.Made), t.MadeBy, millis(t.Expires), millis(t.Used), millis(t.Revoked))
	}
	return s.problem(s.insert(ctx, s.db, "token", tokenColumns, "", values))
}

// Tokens returns all tokens, the newest first.
func (s *credentials) Tokens(ctx context.Context) ([]Token, error) { return s.tokens(ctx, "") }

// Token returns the token with an id. It returns false if the token does not exist.
func (s *credentials) Token(ctx context.Context, id string) (Token, bool, error) {
	if !storable(id) {
		return Token{}, false, nil
	}
	all, err := s.tokens(ctx, " WHERE id = ?", id)
	if err != nil || len(all) == 0 {
		return Token{}, false, err
	}
	return all[0], true, nil
}

func (s *credentials) tokens(ctx context.Context, where string, args ...any) ([]Token, error) {
	var out []Token
	err := s.rows(ctx, s.read, func(r *sql.Rows) error {
		var t Token
		err := r.Scan(&t.ID, &t.Hash, &t.SigningKey, &t.Role, &t.Cluster, &t.Environment, &t.Note,
			milliseconds{&t.Made}, &t.MadeBy, milliseconds{&t.Expires}, milliseconds{&t.Used},
			milliseconds{&t.Revoked})
		out = append(out, t)
		return err
	}, "SELECT "+tokenColumns+" FROM token"+where+" ORDER BY made DESC, id", args...)
	return out, s.problem(err)
}

// RevokeToken ends a token. It returns false if the token does not exist or has ended already.
func (s *credentials) RevokeToken(ctx context.Context, id string, at time.Time) (bool, error) {
	n, err := s.revoke(ctx, at, `id = ?`, id)
	return n > 0, err
}

// RevokeOthers ends the tokens of a cluster for one environment, except one token. If environment
// is "", it ends the tokens for all environments.
func (s *credentials) RevokeOthers(ctx context.Context, cluster, environment, but string,
	at time.Time) error {
	_, err := s.revoke(ctx, at, `role = 'cluster' AND cluster = ? AND environment = ? AND id <> ?`,
		cluster, environment, but)
	return err
}

// revoke ends tokens, and numbers their ends for EndedTokens.
func (s *credentials) revoke(ctx context.Context, at time.Time, where string,
	args ...any) (n int64, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		if _, err := s.exec(ctx, tx, `UPDATE token_ended SET number = number + 1`); err != nil {
			return err
		}
		n, err = s.exec(ctx, tx,
			`UPDATE token SET revoked = ?, ended = (SELECT number FROM token_ended) `+
				`WHERE revoked = 0 AND `+where, append([]any{at.UnixMilli()}, args...)...)
		return err
	})
	return n, s.problem(err)
}

// EndedTokens returns the ids of tokens that were ended after a number, and the number for the next
// call.
func (s *credentials) EndedTokens(ctx context.Context,
	after int64) (ids []string, number int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT number FROM token_ended`).Scan(&number)
	if err == nil && number != after {
		ids, err = column[string](ctx, s.database, s.read, `SELECT id FROM token WHERE ended > ?`, after)
	}
	return ids, number, s.problem(err)
}

// UseTokens records when tokens were last used.
func (s *credentials) UseTokens(ctx context.Context, ids []string, at time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	among, args := s.anyOf(values(ids))
	_, err := s.exec(ctx, s.db, `UPDATE token SET used = ? WHERE id `+among,
		append([]any{at.UnixMilli()}, args...)...)
	return s.problem(err)
}

// audit owns the table of the actions of people and programs. Nothing removes rows from it.
type audit struct{ *database }

// Audit adds an entry.
func (s *audit) Audit(ctx context.Context, e api.Event) error {
	return s.problem(s.transaction(ctx, func(tx *sql.Tx) error {
		lock := `SELECT number FROM change`
		if s.postgres {
			lock += ` FOR UPDATE`
		}
		var number int64
		if err := tx.QueryRowContext(ctx, lock).Scan(&number); err != nil {
			return err
		}
		_, err := s.exec(ctx, tx, `INSERT INTO audit (number, at, who, action, subject, detail) SELECT `+
			`COALESCE(MAX(number), 0) + 1, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), `+
			`CAST(? AS TEXT), CAST(? AS TEXT) FROM audit`,
			e.At.UnixMilli(), e.Who, e.Action, e.Subject, e.Detail)
		return err
	}))
}

// Events returns at most so many entries of the audit with a lower number, 0 for all, the
// newest first. The list is never nil.
func (s *audit) Events(ctx context.Context, before int64, most int) ([]api.Event, error) {
	if before == 0 {
		before = 1 << 62
	}
	out := []api.Event{}
	err := s.rows(ctx, s.read, func(r *sql.Rows) error {
		var e api.Event
		err := r.Scan(&e.Number, milliseconds{&e.At}, &e.Who, &e.Action, &e.Subject, &e.Detail)
		out = append(out, e)
		return err
	}, `SELECT number, at, who, action, subject, detail FROM audit WHERE number < ? ORDER BY number DESC LIMIT ?`, before, most)
	return out, s.problem(err)
}

// EndSession records the end of a session or a sign-in that would otherwise be valid until a time.
// Of all calls with one id, at all hubs of the database, first is true for exactly one.
func (s *credentials) EndSession(ctx context.Context, id string,
	now, until time.Time) (first bool, err error) {
	n, err := s.exec(ctx, s.db,
		`INSERT INTO ended_session (id, until) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`,
		id, until.UnixMilli())
	if err == nil { // remove the ended ones that are no longer valid anyway
		_, err = s.exec(ctx, s.db, `DELETE FROM ended_session WHERE until < ?`,
			now.Add(-time.Hour).UnixMilli())
	}
	return err == nil && n > 0, s.problem(err)
}

// EndedSessions returns the sessions and sign-ins that have ended before their time was over.
func (s *credentials) EndedSessions(ctx context.Context, now time.Time) ([]string, error) {
	ids, err := column[string](ctx, s.database, s.read,
		`SELECT id FROM ended_session WHERE until >= ?`, now.Add(-time.Hour).UnixMilli())
	return ids, s.problem(err)
}

// Secret returns the secret with a name. If it does not exist, Secret stores and returns the given
// one, so that all hubs of a database get the same.
func (s *credentials) Secret(ctx context.Context, name, otherwise string) (string, error) {
	_, err := s.exec(ctx, s.db,
		`INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`,
		name, otherwise)
	var value string
	if err == nil {
		err = s.db.QueryRowContext(ctx, s.query(`SELECT value FROM secret WHERE name = ?`),
			name).Scan(&value)
	}
	return value, s.problem(err)
}
