package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/kalypso-io/kalypso/hub/api"
)

// Token is a token as the store keeps it, without its secret. Hash is the hash of the secret, and
// SigningKey the public key that verifies signatures of the token, in hexadecimal digits; "" for none.
type Token struct {
	api.Token
	Hash, SigningKey string
}

const tokenColumns = "id, hash, signing_key, role, cluster, environment, note, made, made_by, expires, used, revoked"

// AddTokens adds tokens, whose ids must be new.
func (s *Store) AddTokens(ctx context.Context, tokens ...Token) error {
	var values []any
	for _, t := range tokens {
		values = append(values, t.ID, t.Hash, t.SigningKey, t.Role, t.Cluster, t.Environment, t.Note,
			milliseconds(t.Made), t.MadeBy, milliseconds(t.Expires), milliseconds(t.Used), milliseconds(t.Revoked))
	}
	return s.token(s.insert(ctx, s.db, "token", tokenColumns, "", values))
}

func (s *Store) token(err error) error {
	if err != nil {
		return s.problem(err)
	}
	return nil
}

// Tokens returns all tokens, the newest first.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) { return s.tokens(ctx, "") }

// Token returns the token of an id; false for none.
func (s *Store) Token(ctx context.Context, id string) (Token, bool, error) {
	if !storable(id) {
		return Token{}, false, nil
	}
	all, err := s.tokens(ctx, " WHERE id = ?", id)
	if err != nil || len(all) == 0 {
		return Token{}, false, err
	}
	return all[0], true, nil
}

func (s *Store) tokens(ctx context.Context, where string, args ...any) ([]Token, error) {
	var out []Token
	err := s.rows(ctx, s.read, func(r *sql.Rows) error {
		var t Token
		var made, expires, used, revoked int64
		if err := r.Scan(&t.ID, &t.Hash, &t.SigningKey, &t.Role, &t.Cluster, &t.Environment, &t.Note,
			&made, &t.MadeBy, &expires, &used, &revoked); err != nil {
			return err
		}
		t.Made, t.Expires, t.Used, t.Revoked = instant(made), instant(expires), instant(used), instant(revoked)
		out = append(out, t)
		return nil
	}, "SELECT "+tokenColumns+" FROM token"+where+" ORDER BY made DESC, id", args...)
	return out, s.token(err)
}

// RevokeToken ends a token, once; false where there is none that is not ended.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time) (bool, error) {
	n, err := s.revoke(ctx, at, `id = ?`, id)
	return n > 0, err
}

// RevokeOthers ends all tokens of a cluster for an environment, or for all, but one.
func (s *Store) RevokeOthers(ctx context.Context, cluster, environment, but string, at time.Time) error {
	_, err := s.revoke(ctx, at, `role = 'cluster' AND cluster = ? AND environment = ? AND id <> ?`,
		cluster, environment, but)
	return err
}

// revoke ends tokens. Which ended, and after which, is for EndedTokens.
func (s *Store) revoke(ctx context.Context, at time.Time, where string, args ...any) (n int64, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, s.problem(err)
	}
	defer func() { _ = tx.Rollback() }()
	result, err := tx.ExecContext(ctx, `UPDATE token_ended SET number = number + 1`)
	if err == nil {
		result, err = tx.ExecContext(ctx,
			s.query(`UPDATE token SET revoked = ?, ended = (SELECT number FROM token_ended) WHERE revoked = 0 AND `+where), append([]any{at.UnixMilli()}, args...)...)
	}
	if err == nil {
		n, err = result.RowsAffected()
	}
	if err == nil {
		err = tx.Commit()
	}
	return n, s.token(err)
}

// EndedTokens returns the ids of tokens that were ended after a number, and the number to ask
// with the next time.
func (s *Store) EndedTokens(ctx context.Context, after int64) (ids []string, number int64, err error) {
	if err := s.read.QueryRowContext(ctx, `SELECT number FROM token_ended`).Scan(&number); err != nil || number == after {
		return nil, number, s.token(err)
	}
	err = s.rows(ctx, s.read, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM token WHERE ended > ?`, after)
	return ids, number, s.token(err)
}

// UseTokens notes when tokens were last used.
func (s *Store) UseTokens(ctx context.Context, ids []string, at time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	values := make([]any, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	among, args := s.among(values)
	_, err := s.db.ExecContext(ctx, s.query(`UPDATE token SET used = ? WHERE id `+among),
		append([]any{at.UnixMilli()}, args...)...)
	return s.token(err)
}

// Audit adds an entry.
func (s *Store) Audit(ctx context.Context, e api.Event) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.problem(err)
	}
	defer func() { _ = tx.Rollback() }()
	lock := `SELECT number FROM change`
	if s.postgres {
		lock += ` FOR UPDATE`
	}
	var number int64
	err = tx.QueryRowContext(ctx, lock).Scan(&number)
	if err == nil {
		_, err = tx.ExecContext(ctx,
			s.query(`INSERT INTO audit (number, at, who, action, subject, detail) SELECT COALESCE(MAX(number), 0) + 1, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT) FROM audit`),
			e.At.UnixMilli(), e.Who, e.Action, e.Subject, e.Detail)
	}
	return s.token(errors.Join(err, tx.Commit()))
}

// Events returns at most so many entries of the audit with a lower number, 0 for all, the
// newest first. The list is never nil.
func (s *Store) Events(ctx context.Context, before int64, most int) ([]api.Event, error) {
	if before == 0 {
		before = 1 << 62
	}
	out := []api.Event{}
	err := s.rows(ctx, s.read, func(r *sql.Rows) error {
		var e api.Event
		var at int64
		err := r.Scan(&e.Number, &at, &e.Who, &e.Action, &e.Subject, &e.Detail)
		e.At = instant(at)
		out = append(out, e)
		return err
	}, `SELECT number, at, who, action, subject, detail FROM audit WHERE number < ? ORDER BY number DESC LIMIT ?`, before, most)
	return out, s.token(err)
}
