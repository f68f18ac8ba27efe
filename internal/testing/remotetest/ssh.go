package remotetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHServer serves the repositories of this machine over SSH, to the user git with
// one key.
type SSHServer struct {
	Address string             // HOST:PORT
	Key     ssh.PublicKey      // the host's
	Client  ed25519.PrivateKey // the user's

	t testing.TB
}

// ServeSSH runs a server until the test ends.
func ServeSSH(t testing.TB) *SSHServer {
	t.Helper()
	_, hostKey := NewKey(t)
	client, clientKey := NewKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != "git" || string(key.Marshal()) != string(clientKey.PublicKey().Marshal()) {
			return nil, fmt.Errorf("who is %s?", c.User())
		}
		return nil, nil
	}}
	config.AddHostKey(hostKey)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serveConnection(connection, config)
		}
	}()
	return &SSHServer{Address: listener.Addr().String(), Key: hostKey.PublicKey(), Client: client, t: t}
}

// NewKey returns a new key, as it is and as it signs.
func NewKey(t testing.TB) (ed25519.PrivateKey, ssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	must(t, err)
	return key, signer
}

// PEM returns a private key in the format of ssh-keygen. If passphrase is "", the key is not
// encrypted.
func PEM(t testing.TB, key ed25519.PrivateKey, passphrase string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	must(t, err)
	return string(pem.EncodeToMemory(block))
}

// URL returns the URL of a repository.
func (s *SSHServer) URL(r *Repository) string {
	return "ssh://git@" + s.Address + filepath.ToSlash(r.Dir)
}

// KnownHost returns the line of known_hosts with a key of the server.
func (s *SSHServer) KnownHost(key ssh.PublicKey) string {
	return knownhosts.Line([]string{knownhosts.Normalize(s.Address)}, key) + "\n"
}

// Login lets this process's ssh know the server, and the server this process: by
// files in the home folder.
func (s *SSHServer) Login() {
	s.t.Helper()
	dir := filepath.Join(os.Getenv("HOME"), ".ssh")
	must(s.t, os.MkdirAll(dir, 0o700))
	must(s.t, os.WriteFile(filepath.Join(dir, "known_hosts"), []byte(s.KnownHost(s.Key)), 0o600))
	must(s.t, os.WriteFile(filepath.Join(dir, "id_ed25519"), []byte(PEM(s.t, s.Client, "")), 0o600))
}

func serveConnection(connection net.Conn, config *ssh.ServerConfig) {
	defer connection.Close()
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go serveSession(channel, requests)
	}
}

// serveSession runs git-upload-pack and git-receive-pack as a login shell would.
func serveSession(channel ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(r.Type == "env", nil)
			continue
		}
		_ = r.Reply(true, nil)
		var command struct{ Text string }
		_ = ssh.Unmarshal(r.Payload, &command)
		program, path, _ := strings.Cut(command.Text, " ")
		status := uint32(127)
		if program == "git-upload-pack" || program == "git-receive-pack" {
			status = run(channel, strings.TrimPrefix(program, "git-"), strings.Trim(path, "'"))
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		_ = channel.Close()
	}
}

func run(channel ssh.Channel, program, path string) uint32 {
	cmd := exec.Command("git", program, path)
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	stdin, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 127
	}
	go func() {
		_, _ = io.Copy(stdin, channel)
		_ = stdin.Close()
	}()
	_ = cmd.Wait()
	return uint32(cmd.ProcessState.ExitCode())
}
