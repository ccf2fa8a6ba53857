package cert

import "crypto/x509"

func ParseCertsPEM([]byte) ([]*x509.Certificate, error) { return nil, nil }
