/** The join page's entry. The token comes after the # of the link and never leaves for a server's log. */

import "./style/join.css";

import { openLending } from "./join/lending";
import { joinPage } from "./join/page";
import { mount } from "./view/dom";

const token = decodeURIComponent(location.hash.slice(1));
const place = document.getElementById("app");
if (place) mount(place, () => joinPage(openLending(token), token !== ""));

// Another link opened in this tab is another pool: begin anew.
addEventListener("hashchange", () => location.reload());
