package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kalypso-io/kalypso/hub/api"
)

// ReadToken returns the token in a file.
func ReadToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s has no token in it, which is one word", file)
	}
	return token, nil
}

// Enroll returns the token of a cluster in a file. Where there is no such file, it gets one from
// the hub, and writes it for this user alone.
func Enroll(ctx context.Context, hub *api.Client, cluster, file string) (string, error) {
	token, err := ReadToken(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	// What cannot be written is found before the hub makes a token, which ends those of before.
	temporary, err := os.CreateTemp(filepath.Dir(file), ".token-*") // 0600
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	made, err := hub.Enroll(ctx, cluster)
	if err != nil {
		return "", errors.Join(fmt.Errorf("enrolling cluster %s: %w", cluster, err), temporary.Close())
	}
	_, err = temporary.WriteString(made.Secret + "\n")
	if err := errors.Join(err, temporary.Close()); err != nil {
		return "", err
	}
	return made.Secret, os.Rename(temporary.Name(), file)
}
