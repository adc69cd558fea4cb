package main

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// secure applies the TLS mode and the server's key of the option file. The driver would send the password
// over any TLS, and without TLS encrypt it with any key that a server sends: it leaves this host only with
// REQUIRED or VERIFY_IDENTITY, with DISABLED under the key of the file, or with get-server-public-key.
func secure(config *mysql.Config, settings map[string]string) error {
	mode := strings.ToUpper(orElse(settings["ssl-mode"], "DISABLED"))
	for name := range settings {
		known := name == "ssl-mode" || name == "ssl-ca" || name == "ssl-cert" || name == "ssl-key"
		if (strings.HasPrefix(name, "ssl") || strings.HasPrefix(name, "tls")) && !known {
			return fmt.Errorf("option file: %s is not supported: use ssl-mode, ssl-ca, ssl-cert and ssl-key", name)
		}
	}
	switch mode {
	case "DISABLED":
	case "PREFERRED", "REQUIRED", "VERIFY_IDENTITY":
		encrypted, err := tlsConfig(settings, mode == "VERIFY_IDENTITY")
		if err != nil {
			return err
		}
		config.TLS, config.AllowFallbackToPlaintext = encrypted, mode == "PREFERRED"
	default:
		return fmt.Errorf("option file: ssl-mode=%s is not supported: use DISABLED, PREFERRED, REQUIRED or VERIFY_IDENTITY", mode)
	}
	if path := settings["server-public-key-path"]; path != "" {
		key, err := publicKey(path)
		if err != nil {
			return err
		}
		mysql.RegisterServerPubKey("server", key)
		config.ServerPubKey = "server"
		if mode == "DISABLED" {
			return nil
		}
	}
	address := net.ParseIP(settings["host"])
	local := config.Net == "unix" || settings["host"] == "localhost" || (address != nil && address.IsLoopback())
	permission, given := settings["get-server-public-key"]
	permitted := given && permission != "0" && !strings.EqualFold(permission, "off")
	if local || permitted || config.Passwd == "" || mode == "REQUIRED" || mode == "VERIFY_IDENTITY" {
		return nil
	}
	return fmt.Errorf("%s: without TLS the password is not sent under a key that the server sends: "+
		"use ssl-mode, server-public-key-path or get-server-public-key in the option file", config.Addr)
}

func tlsConfig(settings map[string]string, verify bool) (*tls.Config, error) {
	config := &tls.Config{ServerName: settings["host"], InsecureSkipVerify: !verify}
	if path := settings["ssl-ca"]; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in PEM format", path)
		}
	}
	if settings["ssl-cert"] != "" {
		pair, err := tls.LoadX509KeyPair(settings["ssl-cert"], settings["ssl-key"])
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func publicKey(path string) (*rsa.PublicKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil {
		if parsed, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			if key, isRSA := parsed.(*rsa.PublicKey); isRSA {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("%s: no RSA public key in PEM format", path)
}
