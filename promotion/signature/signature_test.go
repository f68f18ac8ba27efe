package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

var content = []byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nx\n")

// sshKey writes a private key, and returns the file and the public key.
func sshKey(t *testing.T, passphrase string) (string, ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return keyFile(t, pem.EncodeToMemory(block)), signer.PublicKey()
}

func keyFile(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// An SSH signature is one that git's own rules accept, and the same each time.
func TestSSH(t *testing.T) {
	for _, passphrase := range []string{"", "open sesame"} {
		file, public := sshKey(t, passphrase)
		t.Setenv(passphraseEnv, passphrase)
		s, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		one, err := s.Sign(content)
		if err != nil {
			t.Fatal(err)
		}
		if two, _ := s.Sign(content); two != one {
			t.Error("two signatures of one content differ")
		}
		signature, err := sshsig.Unarmor([]byte(one))
		if err != nil {
			t.Fatal(err)
		}
		if err := sshsig.Verify(bytes.NewReader(content), signature, public, sshsig.HashSHA512, "git"); err != nil {
			t.Error(err)
		}
		if s.SSH == nil {
			t.Error("the key of SSH is not there")
		}
	}
}

func TestGPG(t *testing.T) {
	entity, err := openpgp.NewEntity("kalypso", "", "kalypso@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	w, err := armor.Encode(&data, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := entity.SerializePrivate(w, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open("gpg:" + keyFile(t, data.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := s.Sign(content)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openpgp.CheckArmoredDetachedSignature(openpgp.EntityList{entity}, bytes.NewReader(content), strings.NewReader(signature), nil); err != nil {
		t.Error(err)
	}
}

// An error about a key describes the problem, without any contents of the key.
func TestBadKeys(t *testing.T) {
	locked, _ := sshKey(t, "open sesame")
	for file, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"):    "no such file",
		keyFile(t, []byte("SECRET")):          "no key found",
		"gpg:" + keyFile(t, []byte("SECRET")): "no armored data",
		locked:                                "give it in $KALYPSO_SIGN_PASSPHRASE",
		keyFile(t, []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nxx")): "no key found",
	} {
		_, err := Open(file)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	t.Setenv(passphraseEnv, "wrong")
	if _, err := Open(locked); err == nil || strings.Contains(err.Error(), "wrong\"") {
		t.Errorf("got %v", err)
	}
}
