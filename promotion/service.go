package promotion

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// post asks an http gate's service.
func post(ctx context.Context, g model.HTTPGate, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if g.TokenFrom != "" {
		token := os.Getenv(g.TokenFrom)
		if token == "" {
			return nil, fmt.Errorf("the environment has no $%s, which has the token", g.TokenFrom)
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: httpclient.Transport(httpclient.Options{Dial: g.Timeout, Answer: g.Timeout})}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	return httpclient.ReadAll(response.Body, mostAnswer)
}

// mostAnswer is how many bytes an http gate's answer may have.
const mostAnswer = 1 << 16
