package v1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type (
	ServiceAccountsGetter interface {
		ServiceAccounts(namespace string) ServiceAccountInterface
	}
	ServiceAccountInterface interface {
		Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.ServiceAccount, error)
	}
)
