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
)

// sendTimeout is how long a target may take.
const sendTimeout = 15 * time.Second

// newClient returns the client for targets. It follows no redirects: the address is a secret,
// and a signature is for one.
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
	body, err := bodyOf(t, m)
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
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	return nil
}

func bodyOf(t *Target, m *Message) ([]byte, error) {
	if t.Kind != Slack {
		return json.Marshal(m)
	}
	text := m.Text
	if m.Link != "" {
		text += "\n<" + m.Link + "|Open the hub>"
	}
	return json.Marshal(map[string]string{"text": text})
}
