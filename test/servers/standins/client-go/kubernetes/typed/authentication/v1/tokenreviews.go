package v1

import (
	"context"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type (
	TokenReviewsGetter interface {
		TokenReviews() TokenReviewInterface
	}
	TokenReviewInterface interface {
		Create(ctx context.Context, review *authv1.TokenReview, opts metav1.CreateOptions) (*authv1.TokenReview, error)
	}
)
