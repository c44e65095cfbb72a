//! Profiles: the fitted calibrations of a folder, each as its report.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use minijinja::{Value, context};

use super::super::fault::Fault;
use super::super::runs::path;
use super::super::service::Service;
use super::{Place, apart, filled, html, in_path, links, page as whole, shell};
use crate::calibration::Profile;
use crate::report::calibration::write_in;
use crate::report::words::plain;

/// The files of the folder that may be profiles, by name.
fn files(service: &Service) -> Vec<(String, PathBuf)> {
    let Ok(folder) = std::fs::read_dir(service.profiles()) else { return Vec::new() };
    let mut files: Vec<(String, PathBuf)> = folder
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_json = path.extension().is_some_and(|own| own == "json");
            let name = path.file_stem()?.to_str()?.to_owned();
            (is_json && path.is_file()).then_some((name, path))
        })
        .collect();
    files.sort();
    files
}

pub(in super::super) async fn list(State(service): State<Arc<Service>>) -> Result<Response, Fault> {
    let read = service.clone();
    let profiles = apart(move || {
        let own = read.judging().and_then(|judging| judging.panel.profile());
        let in_force = own.map(|own| own.hash().to_owned());
        Ok(files(&read)
            .into_iter()
            .map(|(name, path)| row(&name, &path, in_force.as_deref()))
            .collect::<Vec<_>>())
    })
    .await?;
    let folder = plain(&service.profiles().display().to_string());
    let body = filled(include_str!("profiles.html"), context! { profiles, folder })?;
    whole(&service, Place::Profiles, "Profiles", &[], &body)
}

fn row(name: &str, path: &std::path::Path, in_force: Option<&str>) -> Value {
    match Profile::read(path) {
        Ok(profile) => {
            let certificate = &profile.certificate;
            let promise = match certificate.threshold {
                Some(_) => format!(
                    "{} at most {} with confidence {} ({} groups with a bad case)",
                    certificate.mode.name(),
                    certificate.alpha,
                    1.0 - certificate.delta,
                    certificate.n_bad,
                ),
                None => certificate.reason.clone().unwrap_or_else(|| "none".to_owned()),
            };
            let judges: Vec<&str> = profile.judges.keys().map(String::as_str).collect();
            let is_own = profile.hash().is_ok_and(|hash| in_force == Some(hash.as_str()));
            context! {
                name => plain(name), link => in_path(name), criterion => plain(&profile.criterion),
                promise => plain(&promise), judges => plain(&judges.join(", ")), in_force => is_own,
            }
        }
        Err(error) => context! {
            name => plain(name), link => "", criterion => "", judges => "", in_force => false,
            promise => plain(&format!("can't be read: {error}")),
        },
    }
}

pub(in super::super) async fn one(
    State(service): State<Arc<Service>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Fault> {
    let name = path(name)?;
    let links = links(&service, Place::Profiles);
    let own = links.clone();
    let read = service.clone();
    let text = apart(move || {
        // Looked up among the files that are there, so that no name leads out of the folder.
        let Some((_, path)) = files(&read).into_iter().find(|(own, _)| *own == name) else {
            return Err(Fault::not_found(format!("there is no profile `{name}`")));
        };
        let profile = Profile::read(&path).map_err(|error| Fault::unusable(error.to_string()))?;
        let mut text = Vec::new();
        write_in(&shell(&own), &mut text, &profile.figures)?;
        Ok(text)
    })
    .await?;
    Ok(html(StatusCode::OK, &shell(&links), text))
}
