package httpclient

import (
	"fmt"
	"io"
	"net/http"
)

// A TooLongError is that a server sends more than may be read.
type TooLongError struct{ Most int64 }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the server sends more than the %d bytes that are read", e.Most)
}

// LimitTransport returns a transport whose responses have bodies of at most most bytes: a longer
// one ends with a *TooLongError.
func LimitTransport(base http.RoundTripper, most func(*http.Response) int64) http.RoundTripper {
	return &limitTransport{base, most}
}

type limitTransport struct {
	base http.RoundTripper
	most func(*http.Response) int64
}

func (b *limitTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{newReader(response.Body, b.most(response)), response.Body}
	return response, nil
}

// ReadAll reads all of r. It returns a *TooLongError if r has more than most bytes.
func ReadAll(r io.Reader, most int64) ([]byte, error) { return io.ReadAll(newReader(r, most)) }

func newReader(r io.Reader, most int64) io.Reader { return &boundedReader{r, most, most} }

// boundedReader ends with a *TooLongError if r has more than most bytes.
type boundedReader struct {
	r          io.Reader
	most, left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		return int(b.left), &TooLongError{Most: b.most}
	}
	b.left -= int64(n)
	return n, err
}
