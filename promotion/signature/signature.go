// Package signature signs commits as git does, with SSH keys and with exported GPG keys,
// so that `git verify-commit` knows them.
package signature

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Signer signs with one key.
type Signer struct {
	// SSH is the key if it is an SSH key; else nil.
	SSH  ssh.Signer
	sign func(content []byte) (string, error)
}

// Sign returns the armored signature of the content of a commit or tag. With an SSH key
// of the kind Ed25519 or RSA equal contents have equal signatures; one of GPG has the
// time in it.
func (s *Signer) Sign(content []byte) (string, error) { return s.sign(content) }

// passphraseEnv is the environment variable with the passphrase of a key.
const passphraseEnv = "KALYPSO_SIGN_PASSPHRASE"

// Open reads a key: a file with a private SSH key or, as gpg:FILE, the output of `gpg
// --export-secret-keys --armor`. If the key has a passphrase, it is in $KALYPSO_SIGN_PASSPHRASE.
func Open(key string) (*Signer, error) {
	file, isGPG := strings.CutPrefix(key, "gpg:")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key to sign with: %w", err)
	}
	var s *Signer
	if isGPG {
		s, err = openGPG(data)
	} else {
		s, err = openSSH(data)
	}
	if err != nil {
		return nil, fmt.Errorf("the key %s: %w", file, err)
	}
	return s, nil
}

func openSSH(data []byte) (*Signer, error) {
	key, err := ssh.ParsePrivateKey(data)
	if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
		passphrase := os.Getenv(passphraseEnv)
		if passphrase == "" {
			return nil, errors.New("it has a passphrase: give it in $" + passphraseEnv)
		}
		key, err = ssh.ParsePrivateKeyWithPassphrase(data, []byte(passphrase))
	}
	if err != nil {
		return nil, err
	}
	return &Signer{SSH: key, sign: func(content []byte) (string, error) {
		signature, err := sshsig.Sign(bytes.NewReader(content), key, sshsig.HashSHA512, "git")
		if err != nil {
			return "", err
		}
		return string(sshsig.Armor(signature)), nil
	}}, nil
}

func openGPG(data []byte) (*Signer, error) {
	keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if len(keys) != 1 || keys[0].PrivateKey == nil {
		return nil, fmt.Errorf("it has %d keys, and one private key is what signs", len(keys))
	}
	entity := keys[0]
	if entity.PrivateKey.Encrypted {
		passphrase := os.Getenv(passphraseEnv)
		if passphrase == "" {
			return nil, errors.New("it has a passphrase: give it in $" + passphraseEnv)
		}
		if err := entity.DecryptPrivateKeys([]byte(passphrase)); err != nil {
			return nil, err
		}
	}
	return &Signer{sign: func(content []byte) (string, error) {
		var out bytes.Buffer
		err := openpgp.ArmoredDetachSign(&out, entity, bytes.NewReader(content), nil)
		return out.String(), err
	}}, nil
}
