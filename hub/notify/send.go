package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/kalypso-io/kalypso/hub/store"
)

// sendTimeout is how long a target may take.
const sendTimeout = 15 * time.Second

// newClient returns the client for targets. It follows no redirects, because the address is a
// secret, and a signature is for only one receiver.
func newClient() *http.Client {
	return &http.Client{Timeout: sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send sends a message that has a text. No error has the address.
func send(ctx context.Context, client *http.Client, t *Target, m *Message) error {
	address, err := t.address()
	if err != nil {
		return err
	}
	key, err := t.key()
	if err != nil {
		return err
	}
	var content any = m
	if t.Kind == Slack {
		text := m.Text
		if m.Link != "" {
			text += "\n<" + m.Link + "|Open the hub>"
		}
		content = map[string]string{"text": text}
	}
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("the URL is none")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "kalypso-hub")
	if key != "" {
		mac := hmac.New(sha256.New, []byte(key))
		_, _ = mac.Write(body)
		r.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	answer, err := client.Do(r)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err
		}
		return err
	}
	// so that the connection can be used again
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	return nil
}

// attempt is the progress of a message, as the database keeps it. The hub that adds or replaces it
// has claimed the message until the lease ends. If that hub was killed in between, it no longer
// sends the message, and another hub does.
type attempt struct {
	state  string // one of those below
	number int    // of the attempt, from 1
	// For a counted event: how many assignments have drifted or are stale according to the message,
	// and when it was first due, in milliseconds.
	count int
	began int64
}

// The states of a message.
const (
	sending = "sending"
	failed  = "failed"
	sent    = "sent"
	gaveUp  = "gave-up"
	before  = "before" // the event is older than the target
)

// The limits of attempts: how long an attempt may take, how often a message is tried, and the
// pauses. The first pause is doubled each time.
const (
	lease        = 2 * time.Minute
	maxAttempts  = 12
	firstPause   = 30 * time.Second
	longestPause = time.Hour
)

func (a attempt) String() string {
	return fmt.Sprintf("%s %d %d %d", a.state, a.number, a.count, a.began)
}

func parseAttempt(text string) attempt {
	a := attempt{state: sent}
	// unreadable text counts as sent
	_, _ = fmt.Sscanf(text, "%s %d %d %d", &a.state, &a.number, &a.count, &a.began)
	return a
}

func pause(number int) time.Duration { return min(firstPause<<(min(number, 20)-1), longestPause) }

// next returns the number of the attempt that is due now, or 0 if no attempt is due.
func (a attempt) next(at, now time.Time) int {
	switch {
	case a.state == sending && !now.Before(at.Add(lease)),
		a.state == failed && !now.Before(at.Add(pause(a.number))):
		return a.number + 1
	}
	return 0
}

// claim begins an attempt. It returns false if another hub was first. was is nil for the first
// attempt.
func (n *Notifier) claim(ctx context.Context, key string, was *store.Notification,
	a attempt) (*store.Notification, bool, error) {
	is := &store.Notification{Key: key, At: n.Hub.Now().Truncate(time.Millisecond),
		Reference: a.String()}
	if was == nil {
		ok, err := n.Hub.Store().AddNotification(ctx, *is)
		return is, ok, err
	}
	ok, err := n.Hub.Store().ReplaceNotification(ctx, *was, *is)
	return is, ok, err
}

// try makes an attempt at a message, and keeps the result.
func (n *Notifier) try(ctx context.Context, t *Target, key string, was *store.Notification,
	a attempt, m *Message) error {
	a.state = sending
	claimed, ok, err := n.claim(ctx, key, was, a)
	if err != nil || !ok {
		return err
	}
	if m.ID = key; a.began > 0 { // several messages may have the same key
		m.ID = fmt.Sprintf("%s/%d", key, a.began)
	}
	if err := t.text(m); err != nil {
		n.template(t, m.Event, err)
	}
	failure := send(ctx, n.client, t, m)
	if failure != nil && ctx.Err() != nil {
		return ctx.Err() // the hub ends: another one tries again when the lease has ended
	}
	a.state = sent
	if failure != nil {
		a.state = failed
		text := fmt.Sprintf("it is tried again after %s", pause(a.number))
		if a.number >= maxAttempts {
			a.state, text = gaveUp, fmt.Sprintf("it is given up after %d attempts", a.number)
		}
		n.Problem(fmt.Errorf("notification %s (%s of %s): %w; %s", t.Name, m.Event, m.Where(), failure,
			text))
	}
	_, _, err = n.claim(ctx, key, claimed, a)
	return err
}
